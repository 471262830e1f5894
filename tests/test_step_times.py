"""What is printed of the steps of whole programs: which count as one, and how many are as fast as in PyTorch."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

from benchmarks.step_times import Steps, least, summary


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


FORKS = """\
import sys, time
from dataclasses import asdict
from benchmarks.forks import in_fork
from benchmarks.step_times import run_side

works, fails = sys.argv[1:]
print(in_fork(lambda: asdict(run_side("torch", works)), "program", 60.0))
print(in_fork(lambda: asdict(run_side("torch", fails)), "program", 60.0))
print(in_fork(lambda: time.sleep(5), "late", 0.2))
"""


def test_a_fork_says_what_a_program_took_and_why_it_failed(tmp_path: Path) -> None:
    works, fails = tmp_path / "works.py", tmp_path / "fails.py"
    works.write_text(
        "import torch\n"
        "optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)\n"
        "for _ in range(6):\n"
        "    optimizer.step()\n"
        "    torch.autograd.backward([])\n"
    )
    fails.write_text("import torch\nraise ValueError('no data')\n")
    # in a process of its own: this one may have computed with JAX, whose threads don't go with a fork
    command = [sys.executable, "-c", FORKS, str(works), str(fails)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    first, *others = done.stdout.splitlines()
    assert "'count': 6, 'later': 3" in first
    assert others == ["None", "None"]
    assert "program: ValueError: no data" in done.stderr
