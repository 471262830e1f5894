"""``t2j rule new`` on a copy of the rules and their samples."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest

from t2j_lsp.commands.rule import CALLS, LAYER_SAMPLES, new_rule
from t2j_lsp.contract import T2JError
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.rule.signature import parse_signature

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "rules", tmp_path / "rules", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "tests" / "rules", tmp_path / "tests" / "rules", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def added(root: Path, path: Path) -> str:
    """What the command put into a file."""
    old, new = (ROOT / path).read_text(), (root / path).read_text()
    assert ast.parse(new)
    return "".join(line for line in new.splitlines(keepends=True) if line not in old.splitlines(keepends=True))


def test_a_call_gets_a_row_with_torchs_signature_and_a_sample(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_rules()
    monkeypatch.delitem(REGISTRY.rules, "torch.vander")
    written = new_rule("torch.vander", "creation", checkout)
    assert written == (Path("rules/creation.py"), CALLS)
    row = added(checkout, written[0])
    assert "jnp.TODO({x}, {N}, {increasing})" in row and row.count("# TODO") == 1
    text = re.search(r'"(torch\.vander\(.*\))"', row)
    assert text is not None
    assert [p.name for p in parse_signature(text[1]).parameters or ()] == ["x", "N", "increasing"]
    assert added(checkout, CALLS) == '    "torch.vander": [call()],  # TODO\n'


def test_the_subject_is_that_of_the_rest_of_the_package(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_rules()
    monkeypatch.delitem(REGISTRY.rules, "torch.nn.functional.fractional_max_pool2d_with_indices")
    written = new_rule("torch.nn.functional.fractional_max_pool2d_with_indices", None, checkout)
    assert written[0].parent == Path("rules") and "fractional_max_pool2d_with_indices(" in added(checkout, written[0])


def test_a_layer_gets_a_row_and_a_sample(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_rules()
    monkeypatch.delitem(LAYERS, "torch.nn.Softshrink")
    written = new_rule("torch.nn.Softshrink", "layers_misc", checkout)
    assert written == (Path("rules/layers_misc.py"), LAYER_SAMPLES)
    row = added(checkout, written[0])
    assert '"torch.nn.Softshrink(lambd=0.5)"' in row and "nnx.TODO()" in row
    assert added(checkout, LAYER_SAMPLES) == '    "Softshrink": [one(SIGNED)],  # TODO\n'


@pytest.mark.parametrize(
    ("name", "subject", "message"),
    [
        ("torch.cat", None, "has a rule already"),
        ("torch.nn.modules.linear.Linear", None, "has a rule already"),
        ("torch.no_such_name", "shape", "the installed torch has no"),
        ("torch.serialization.add_safe_globals", None, "--subject"),
        ("torch.serialization.add_safe_globals", "nowhere", "no subject 'nowhere'; there are"),
    ],
)
def test_what_can_not_be_started_is_told(checkout: Path, name: str, subject: str | None, message: str) -> None:
    with pytest.raises(T2JError, match=re.escape(message)):
        new_rule(name, subject, checkout)


def test_an_installed_package_says_that_it_needs_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(T2JError, match="in a checkout of t2j only"):
        new_rule("torch.trapz", "reductions", tmp_path)
