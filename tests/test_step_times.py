"""What is printed of the steps of whole programs: which count as one, and how many are as fast as in PyTorch."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.forks import in_fork
from benchmarks.step_times import Steps, least, run_side, summary


def steps(plain: float, mean: float, later: int = 10) -> Steps:
    return Steps(2 * later, later, plain, 50.0, 0, mean)


def test_the_bar_is_reached_by_what_takes_at_most_a_tenth_longer() -> None:
    sides = [
        (steps(1.0, 2.0), steps(1.1, 1.0)),
        (steps(1.0, 1.0), steps(1.2, 4.0)),
        (steps(1.0, 9.0), steps(math.nan, 1.0)),
    ]
    text = summary(sides)
    assert text.startswith("1 of 2 programs take at most 1.1 times as long, and 1 have only steps that compile; ")
    assert text.endswith("together 0.03 s in PyTorch, 0.05 s in JAX")
    assert summary([]) == "0 of 0 programs take at most 1.1 times as long"


def test_the_least_of_the_rounds_counts() -> None:
    assert least([steps(3.0, 1.0), steps(2.0, 5.0)]) == steps(2.0, 1.0)


def test_optimizers_that_step_behind_one_backward_pass_make_one_step(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)\n"
        "optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (one, other)]\n"
        "for _ in range(4):\n"
        "    other(one(torch.ones(1, 2))).sum().backward()\n"
        "    for optimizer in optimizers:\n"
        "        optimizer.step()\n"
    )
    command = [sys.executable, "-m", "benchmarks.step_times", "--side", "torch", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    assert '"count": 4, "later": 2' in done.stdout


def test_a_fork_says_what_a_program_took_and_why_it_failed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)\n"
        "for _ in range(6):\n"
        "    optimizer.step()\n"
        "    torch.autograd.backward([])\n"
    )
    taken = in_fork(lambda: asdict(run_side("torch", str(program))), "program", 60.0)
    assert (taken["count"], taken["later"]) == (6, 3)
    program.write_text("import torch\nraise ValueError('no data')\n")
    assert in_fork(lambda: asdict(run_side("torch", str(program))), "program", 60.0) is None
    assert "program: ValueError: no data" in capfd.readouterr().err
    assert in_fork(lambda: time.sleep(5), "late", 0.2) is None
