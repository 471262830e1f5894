"""Run times of both sides, in real workers: what is measured is there, and what can't be measured is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.timing import run_time

SOURCE = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return torch.tanh(self.fc(x)).sum(dim=1)


# t2j: x=f32[5, 4]
def scaled(x: torch.Tensor):
    return torch.softmax(x, dim=1)


def unknown(x: torch.Tensor, what):
    return x.view(what.size) + what.shift
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(device="cpu") as ready:
        yield ready


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(SOURCE)
    return tmp_path / "net.py"


def test_a_module_and_a_function_are_timed_and_compiling_apart(source: Path, pool: Pool) -> None:
    code = convert(SOURCE).code
    result = [run_time(source, code, names, pool) for names in (["Net"], ["scaled"], ["Net", "scaled"])]
    for times in result:
        assert times is not None and set(times) == {"torch", "jax", "compile"}
        assert times["torch"] > 0 and 0 < times["jax"] < times["compile"], "compiling is not in the run"


def test_what_has_no_inputs_or_fails_has_no_time(source: Path, pool: Pool) -> None:
    code = convert(SOURCE).code
    assert run_time(source, code, ["unknown"], pool) is None
    assert run_time(source, code.replace("jax.nn.softmax", "jax.nn.no_such"), ["scaled"], pool) is None
    assert run_time(source, "x = 1\n", ["scaled"], pool) is None
    assert run_time(source, code, [], pool) is None
