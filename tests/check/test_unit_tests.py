"""Unit tests of a source: written from what it computes, run on it first, converted, and run on the conversion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.unit_tests.compare import Programs, TestReport, compare_tests, without
from t2j_lsp.check.unit_tests.writer import write_tests
from t2j_lsp.cli import main
from t2j_lsp.contract import Options, Translation

pytestmark = pytest.mark.usefixtures("warm_workers")
NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, features: int = 6, hidden: int = 10, p: float = 0.5):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.fc2 = nn.Linear(hidden, 3)
        self.drop = nn.Dropout(p)
        self.register_buffer("table", torch.arange(3) * 0.5)

    def forward(self, x):
        return self.drop(self.fc2(F.gelu(self.bn(self.fc1(x))))) + self.table


def normalize(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return x / x.norm(dim=-1, keepdim=True).clamp(min=eps)


raise RuntimeError("code at the top level does not run in a test")
"""


def translated(path: Path, text: str) -> Translation:
    return convert_file(path, Options(), text.encode()).translation


def compared(pool: Pool, folder: Path, tests: str, net: str = NET, old: str = "", new: str = "") -> TestReport:
    """The report on tests of a program and its conversion, in which ``old`` became ``new``."""
    source = folder / "net.py"
    source.write_text(net)
    code = convert_file(source, Options()).translation.code
    assert old in code
    return compare_tests(
        pool, Programs(source, code.replace(old, new)), folder / "test_net.py", tests, translated, timeout=600
    )


@pytest.fixture(scope="module")
def written(pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tmp_path_factory.mktemp("source") / "net.py"
    source.write_text(NET)
    tests_of_net = write_tests(pool, Slicer(source), source.with_name("test_net.py"), timeout=600)
    assert not tests_of_net.skipped
    assert tests_of_net.count == tests_of_net.code.count("\ndef test_")
    return tests_of_net.code


def test_what_is_written(written: str) -> None:
    names = [
        line.partition("(")[0].removeprefix("def ") for line in written.splitlines() if line.startswith("def test")
    ]
    assert names == [
        "test_net_output",
        "test_net_gradients",
        "test_net_training",
        "test_net_state",
        "test_net_repeats_in_evaluation",
        "test_net_state_round_trip",
        "test_normalize_output",
        "test_normalize_gradients",
    ]
    training = written[written.index("def test_net_training") : written.index("def test_net_state(")]
    assert 'state["bn.running_var"]' in training
    assert "assert_close(out" not in training  # dropout decides it
    assert 'kept=("table", "bn.num_batches_tracked",)' in written  # what the constructor computed is compared, too


def test_they_agree_with_a_right_conversion(pool: Pool, tmp_path: Path, written: str) -> None:
    report = compared(pool, tmp_path, written)
    assert report.summary() == "8 tests, 8 kept, 8 translated, 8 agree, 0 differ"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", approximate=False", "", "test_net_output"),
        ("axis=-1", "axis=0", "test_normalize_output"),
        (
            "self.bn = BatchNorm(hidden, axis=1, rngs=rngs)",
            "self.bn = nnx.BatchNorm(hidden, rngs=rngs)",
            "test_net_training",
        ),
        ("jnp.arange(3) * 0.5", "jnp.arange(3) * 0.25", "test_net_output"),
    ],
)
def test_they_differ_with_a_mistake(pool: Pool, tmp_path: Path, written: str, old: str, new: str, message: str) -> None:
    report = compared(pool, tmp_path, written, old=old, new=new)
    assert message in [one.name for one in report.differ]
    assert all(one.message for one in report.differ)


def test_tests_that_tell_nothing_are_left_out(pool: Pool, tmp_path: Path) -> None:
    tests = """
import pytest
import torch
from net import Net, normalize

def test_passes():
    assert normalize(torch.ones(2, 3)).shape == (2, 3)

def test_fails():
    assert normalize(torch.ones(2, 3)).sum() == 0

def test_flickers():
    assert Net()(torch.ones(4, 6)).std() == pytest.approx(torch.rand(1).item(), abs=0.2) and torch.rand(1) < 0.5

def test_seeds():
    assert torch.initial_seed() != 1

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass

def test_has_no_rule():
    assert torch.testing.make_tensor((2,), dtype=torch.float32, device="cpu").shape == (2,)
"""
    report = compared(pool, tmp_path, tests)
    left = {one.name: one.outcome for one in report.dropped}
    assert left["test_fails"] == "failed" and left["test_skipped"] == "skipped"
    assert left["test_seeds"] == "flickers"
    assert [name for name, _ in report.untranslated] == ["test_has_no_rule"]
    assert "test_passes" in report.agree and not report.differ
    assert report.tests == 6


def test_a_test_that_the_conversion_fails_says_where(pool: Pool, tmp_path: Path) -> None:
    tests = "import torch\nfrom net import normalize\n\ndef test_it():\n    y = normalize(torch.ones(2, 3))\n"
    tests += "    assert y.shape == (2, 3)\n"
    report = compared(pool, tmp_path, tests, old="return x / ", new="return x[:1, :2] / ")
    (one,) = report.differ
    assert one.name == "test_it" and one.message.startswith("AssertionError") and one.line is not None
    assert report.jax_code.splitlines()[one.line - 1].strip() == "assert y.shape == (2, 3)"


def test_a_test_may_not_leave_its_scratch_folder(pool: Pool, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("kept")
    tests = f"import torch\nfrom pathlib import Path\n\ndef test_it():\n    Path({str(victim)!r}).write_text('gone')\n"
    report = compared(pool, tmp_path, tests)
    assert victim.read_text() == "kept"
    assert "PermissionError" in report.dropped[0].message


def test_functions_are_taken_out_of_a_file() -> None:
    text = "import torch\n\n\n@mark\ndef test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
    assert without(text, ["test_a"]) == "import torch\n\n\ndef test_b():\n    pass\n"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, tests, jax = (tmp_path / name for name in ("net.py", "test_net.py", "test_net_jax.py"))
    source.write_text(NET[: NET.index("raise")])
    code = convert_file(source, Options()).translation.code
    (tmp_path / "net_jax.py").write_text(code.replace("approximate=False", "approximate=True"))
    command = ["tests", str(source), str(tmp_path / "net_jax.py"), "--object", "Net", "-o", str(tests)]
    status = main([*command, "--jax-output", str(jax), "--run", "--json", str(tmp_path / "report.json")])
    message = capsys.readouterr().err
    report = json.loads((tmp_path / "report.json").read_text())
    assert status == 1 and "differs: test_net_output" in message
    assert report["tests"] == report["kept"] == report["translated"] == 6
    assert "from net import Net" in tests.read_text()
    assert "from net_jax import Net" in jax.read_text() and "import torch\n" not in jax.read_text()


def test_the_command_where_there_is_nothing_to_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.py"
    source.write_text("import torch\n\nx = torch.ones(3)\n")
    assert main(["tests", str(source)]) == 3
    assert "no tests" in capsys.readouterr().err


def test_imports_of_a_converted_file_follow_its_name(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "net_jax.py").write_text("")
    test = tmp_path / "test_net.py"
    head = "import torch\nimport net\nfrom net import Net\n\n"
    test.write_text(head + "def test_it():\n    assert net.normalize(torch.ones(3)).ndim == 1\n")
    assert main(["convert", str(test), "-o", str(tmp_path / "test_net_jax.py")]) == 0
    code = (tmp_path / "test_net_jax.py").read_text()
    assert "import net_jax as net\n" in code and "from net_jax import Net\n" in code
    assert main(["convert", str(test), "-o", str(tmp_path / "other.py")]) == 0
    assert "from net import Net\n" in (tmp_path / "other.py").read_text()


def test_tests_in_a_folder_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``tests/test_net.py`` imports ``package.net`` of the project around it."""
    (tmp_path / "package").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from .net import Net\n")
    source, tests = tmp_path / "package" / "net.py", tmp_path / "tests" / "test_net.py"
    source.write_text(NET[: NET.index("raise")])
    tests.write_text(
        "import torch\nfrom package import Net\n\ndef test_it():\n    assert Net()(torch.ones(4, 6)).shape == (4, 3)\n"
    )
    assert main(["tests", str(source), "--tests", str(tests), "--run"]) == 0, capsys.readouterr().err
    assert "1 test, 1 kept, 1 translated, 1 agree, 0 differ" in capsys.readouterr().err
