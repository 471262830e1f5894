"""The Python names that users import: they load late, and ``check`` is a function whatever was imported before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import t2j_lsp
from t2j_lsp.api import Conversions
from t2j_lsp.contract import Options, SourceError

CAT = "import torch\n\n\ndef f(a: torch.Tensor):\n    return torch.cat([a, a], dim=1)\n"

CHECK = """
import sys
{first}
from t2j_lsp import check
from t2j_lsp.contract import SourceError
import t2j_lsp
for function in (check, t2j_lsp.check):
    try:
        function("missing.py")
    except SourceError as error:
        print(error)
"""


@pytest.mark.parametrize("first", ["", "import t2j_lsp.check", "import t2j_lsp.check.run", "import t2j_lsp.api"])
def test_check_is_a_function_in_every_order_of_imports(first: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CHECK.format(first=first)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "missing.py: no such file or directory\n" * 2


def test_convert_gives_code_findings_and_a_source_map() -> None:
    translation = t2j_lsp.convert(CAT)
    assert "jnp.concatenate([a, a], axis=1)" in translation.code
    assert translation.findings == ()
    assert any(entry.source_line == 5 for entry in translation.source_map)


def test_a_neighbour_is_converted_once_until_something_it_reads_changes(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\nfrom other import name\n\n\ndef f(x):\n    return torch.exp(x)\n")
    (tmp_path / "other.py").write_text("name = 1\n")
    conversions = Conversions()
    first = conversions.of(tmp_path / "net.py")
    assert "jnp.exp(x)" in first.code
    assert conversions.of(tmp_path / "net.py") is first
    assert conversions.of(tmp_path / "net.py", Options(x64=True)) is not first
    (tmp_path / "other.py").write_text("name = 2\n")
    second = conversions.of(tmp_path / "net.py")
    assert second is not first
    (tmp_path / "net.py").write_text("import torch\n\n\ndef f(x):\n    return torch.tanh(x)\n")
    assert "jnp.tanh(x)" in conversions.of(tmp_path / "net.py").code


def test_no_more_conversions_are_kept_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversions, "LIMIT", 1)
    conversions = Conversions()
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("import torch\n")
    first = conversions.of(tmp_path / "a.py")
    conversions.of(tmp_path / "b.py")
    assert conversions.of(tmp_path / "a.py") is not first


def test_convert_asks_for_neighbours() -> None:
    asked: list[tuple[int, str]] = []

    def resolve(level: int, name: str) -> None:
        asked.append((level, name))

    t2j_lsp.convert("import torch\nfrom .other import Block\n", resolve=resolve)
    assert (1, "other") in asked


@pytest.mark.parametrize("name", t2j_lsp.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(t2j_lsp, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(t2j_lsp, "nonsense")  # noqa: B009


def test_a_conversion_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\n")
    with pytest.raises(SourceError, match=r"net_jax\.py: no such file"):
        t2j_lsp.check(tmp_path / "net.py", tmp_path / "net_jax.py")
