"""``t2j convert --check``: a conversion with its verdict in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2j_lsp.cli import main
from t2j_lsp.commands.convert_check import Verdict, Verdicts, worse
from t2j_lsp.contract import CheckReport, ObjectVerdict, VerdictKind
from t2j_lsp.migration.verdict_store import load

pytestmark = pytest.mark.usefixtures("warm_workers")
TORCH = "import torch\n\n\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return torch.relu(x) * 2\n"
GAP = TORCH + "\n\ndef g(x: torch.Tensor) -> torch.Tensor:\n    x.register_hook(print)\n    return x\n"


def test_the_code_goes_to_standard_output_and_the_verdict_to_standard_error(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    assert main(["convert", str(tmp_path / "a.py"), "--check", "--device", "cpu"]) == 0
    shown = capfdbinary.readouterr()
    assert b"jax.nn.relu(x) * 2" in shown.out and b"equivalent" not in shown.out
    assert shown.err.splitlines()[-2:] == [b"covered: 1 of 1 function equivalent", b"equivalent"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_a_file_with_a_gap_is_written_and_its_verdict_kept_with_both_reports_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, report = tmp_path / "a.py", tmp_path / "a_jax.py", tmp_path / "report.json"
    source.write_text(GAP)
    files = [str(source), "-o", str(target), "--json", str(report)]
    assert main(["convert", *files, "--check", "--device", "cpu", "--stage", "numeric"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "unchecked"
    form = json.loads(report.read_text())
    assert len(form["gaps"]) == 1 and form["converted"] > 0
    assert form["check"]["verdict"] == "unchecked"
    assert {o["name"]: o["verdict"] for o in form["check"]["objects"]} == {"f": "equivalent", "g": "unchecked"}
    assert form["check"]["coverage"]["text"] == "1 of 2 functions equivalent; 1 place left as PyTorch"
    stored = load(source, target)
    assert stored is not None and stored.verdicts["f"].verdict == "equivalent"
    assert stored.coverage is not None and stored.coverage.text == form["check"]["coverage"]["text"]


def test_a_folder_has_a_verdict_for_each_file_with_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "a.py").write_text(TORCH)
    (code / "plain.py").write_text("A = 1\n")
    (code / "b.py").write_text(TORCH + "\n\ndef seed() -> None:\n    torch.manual_seed(0)\n")
    cell = {"cell_type": "code", "source": "import torch\ntorch.ones(2)", "metadata": {}, "outputs": []}
    notebook = {"cells": [cell | {"execution_count": None}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (code / "n.ipynb").write_text(json.dumps(notebook))
    report = tmp_path / "report.json"
    files = [str(code), "-o", str(tmp_path / "out"), "--json", str(report)]
    assert main(["convert", *files, "--check", "--device", "cpu", "--stage", "numeric"]) == 3
    assert capsys.readouterr().out.splitlines()[-1] == "3 checked: 1 equivalent, 2 unchecked"
    form = json.loads(report.read_text())["check"]
    verdicts = {Path(one["file"]).name: one for one in form["files"]}
    assert {name: one["verdict"] for name, one in verdicts.items()} == {
        "a.py": "equivalent",
        "b.py": "unchecked",
        "n.ipynb": "unchecked",
    }
    assert verdicts["b.py"]["coverage"]["not_run"][0]["name"] == "seed"
    assert verdicts["n.ipynb"]["coverage"]["not_run"] == [
        {"name": "<script>", "kind": "script", "line": 2, "end_line": 2, "cell": 1, "end_cell": 1}
    ]
    assert form["verdict"] == "unchecked"


def test_standard_input_is_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-", "--check"]) == 2
    assert "--check needs a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("codes", "worst"), [((), 0), ((0, 3), 3), ((1, 3), 1), ((1, 0), 1), ((2, 1, 3), 2), ((0, 0), 0)]
)
def test_the_worse_of_two_exit_codes(codes: tuple[int, ...], worst: int) -> None:
    assert worse(*codes) == worst


def test_a_difference_is_the_worst_verdict() -> None:
    kinds = (VerdictKind.EQUIVALENT, VerdictKind.DIFFERENT, VerdictKind.UNCHECKED)
    result = Verdicts(Verdict(Path(k), CheckReport("cpu", [ObjectVerdict("f", k)])) for k in kinds)
    assert (result.verdict, result.exit_code) == (VerdictKind.DIFFERENT, 1)


def test_arguments_that_name_pytorch_are_converted_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\nfrom torch import nn\n\n\n# t2j: args=(4, nn.GELU, nn.Sequential(nn.Linear(4, 4), nn.Tanh())), "
        "x=f32[3, 4]\nclass Block(nn.Module):\n    def __init__(self, n, act, then):\n        super().__init__()\n"
        "        self.fc = nn.Linear(n, n)\n        self.act = act()\n        self.then = then\n\n"
        "    def forward(self, x):\n        return self.then(self.act(self.fc(x)))\n"
    )
    assert main(["convert", str(tmp_path / "a.py"), "--check", "--device", "cpu"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "equivalent"
