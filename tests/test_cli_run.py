"""``t2j run``: how reports show, exit codes, and one program end to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from t2j_lsp.cli import main
from t2j_lsp.commands.run import show
from t2j_lsp.contract import (
    RUN_KINDS,
    Divergence,
    Location,
    ProgramReport,
    ProgramValues,
    SideTimes,
    VerdictKind,
)

PROGRAM = """\
import sys

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
x = torch.randn(8, 2)
for step in range(3):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""


def test_a_report_shows_what_was_compared_and_ends_in_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"printed": ProgramValues(3, 6, 2e-7, 1e-4), "parameters": ProgramValues(2, 3, 1e-8, 1e-4, 1)}
    times = {"torch": SideTimes(1.5, 0.002), "jax": SideTimes(2.25)}
    show(ProgramReport(VerdictKind.EQUIVALENT, values=values, times=times, steps=7, stopped=True))
    assert capsys.readouterr().out.splitlines() == [
        "compared         count  numbers  max rel error  tolerance",
        "printed texts        3        6        2.0e-07    1.0e-04",
        "last parameters      2        3        1.0e-08    1.0e-04",
        "note: 1 number left out, which PyTorch itself does not settle",
        "stopped after 7 optimizer steps",
        "torch: 1.50 s, 2.00 ms from step to step",
        "jax: 2.25 s",
        "equivalent",
    ]


def test_a_difference_is_shown_with_its_places(capsys: pytest.CaptureFixture[str]) -> None:
    place = Divergence(Location("train.py", 3), Location("train_jax.py", 9), "1 in PyTorch, 2 in JAX")
    show(ProgramReport(VerdictKind.DIFFERENT, place.what, divergence=place))
    assert capsys.readouterr().out.splitlines() == [
        "float32: 1 in PyTorch, 2 in JAX (torch train.py:3, jax train_jax.py:9)",
        "different",
    ]


def test_synthetic_data_is_said_with_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    show(ProgramReport(VerdictKind.EQUIVALENT, synthetic=("MNIST: 60000 made-up images",)))
    assert capsys.readouterr().out.splitlines() == [
        "synthetic: MNIST: 60000 made-up images",
        "equivalent (synthetic data)",
    ]


def test_a_program_runs_with_its_arguments_and_writes_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, report = tmp_path / "program.py", tmp_path / "report.json"
    program.write_text(PROGRAM)
    assert main(["run", str(program), "--json", str(report), "--", "0.1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "equivalent"
    form = json.loads(report.read_text())
    assert (form["verdict"], form["precision"], form["steps"], form["stopped"]) == ("equivalent", "float32", 3, False)
    assert list(form["values"]) == list(RUN_KINDS)
    assert form["values"]["printed"]["numbers"] == 3
    assert set(form["times"]) == {"torch", "jax"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "report.json"]


def test_a_conversion_of_ones_own_is_run_and_a_mistake_in_it_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, converted = tmp_path / "program.py", tmp_path / "converted.py"
    program.write_text(PROGRAM)
    assert main(["convert", str(program), "-o", str(converted)]) == 0
    wrong = converted.read_text().replace("(model(x)", "(2 * model(x)")
    assert wrong != converted.read_text()
    converted.write_text(wrong)
    capsys.readouterr()
    assert main(["run", str(program), str(converted), "--", "0.1"]) == 1
    last = capsys.readouterr().out.splitlines()
    assert last[-1] == "different"
    line = next(n for n, text in enumerate(wrong.splitlines(), 1) if 'print("loss"' in text)
    assert f"torch {program.resolve()}:13, jax {converted.resolve()}:{line}" in last[-2]


def test_gaps_are_said_and_nothing_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\n\nx = torch.ones(2, requires_grad=True)\nx.register_hook(print)\n")
    assert main(["run", str(program), "--json", "-"]) == 3
    output = capsys.readouterr()
    form = json.loads(output.out)
    assert (form["verdict"], form["gaps"]) == ("unchecked", [4])
    assert "program.py:4:1: gap" in output.err


@pytest.mark.parametrize(
    "arguments",
    [["missing.py"], ["."], ["notebook.ipynb"], ["x.py", "--steps", "0"], ["x.py", "y.py", "--converted", "y.py"]],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        assert main(["run", *arguments]) == 2
    except SystemExit as end:  # argparse's own
        assert end.code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_both_sides(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text("import torch\n\nx = torch.ones(2)\nwhile x.sum() > 0:\n    x = x * 1.0\n")
    command = [sys.executable, "-c", "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "]
    command[-1] += "from t2j_lsp.cli import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([*command, "run", str(program)]) as running:
        workers: list[psutil.Process] = []
        while len(workers) < 2:
            time.sleep(0.1)  # a child process that starts tells nobody of it
            assert running.poll() is None
            workers = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    gone, left = psutil.wait_procs(workers, 30)
    assert not left, gone
