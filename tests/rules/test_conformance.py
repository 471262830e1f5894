"""A slice of the conformance benchmark: operators whose mistakes were silent, and that the benchmark sees mistakes."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
import torch

from benchmarks.conformance import modules, optimizers
from benchmarks.conformance.cases import is_public, records
from benchmarks.conformance.deviations import COMPARED_OTHERWISE
from benchmarks.conformance.running import differ, run
from t2j_lsp.api import convert

SLICE = (
    ("masked_fill", "bool"),
    ("heaviside", "int"),
    ("cummax", "float"),
    ("polygamma.polygamma_n_2", "float"),
    ("nn.functional.multi_margin_loss", "float"),
)


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Both libraries compute in float64, also what starts from Python numbers."""
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("operator", "dtype"), SLICE)
def test_nothing_differs_in_silence(operator: str, dtype: str) -> None:
    result = run(operator, dtype, limit=3)
    assert result.worst("function") is not None
    assert [p for p in result.problems if p.outcome in ("wrong", "crash")] == []


def test_what_the_source_does_not_show_is_told_from_a_crash() -> None:
    """JAX raises at ``t0.sum(0)`` of a 0-d tensor; with ``t0 = t0.reshape(())`` above it, it converts."""
    result = run("logsumexp", "float", limit=40)
    problems = [p for p in result.problems if p.outcome != "noted"]
    assert problems
    assert all(p.outcome == "unshown" and "[]" in p.inputs for p in problems)


def test_modules_and_optimizers_are_run() -> None:
    """Outputs and gradients of a module; an optimizer's losses and parameters."""
    assert modules.run("nn.PReLU", limit=1).counts == {"train": {"right": 1}}
    assert optimizers.run("optim.SGD", limit=1).counts == {"50 steps": {"right": 1}}


def test_a_module_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the rule of Tanh were that of Sigmoid."""
    monkeypatch.setattr(modules, "convert", lambda code, **options: convert(code.replace("Tanh", "Sigmoid"), **options))
    assert modules.run("nn.Tanh", limit=1).worst("train") == "wrong"


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.ones(2, np.int32), np.ones(2, np.int64)),
        (np.ones(2), np.ones((2, 1))),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1.0 + 1e-6]), np.array([1.0])),
    ],
    ids=["dtype", "shape", "nan", "value"],
)
def test_a_difference_is_seen(got: np.ndarray, want: np.ndarray) -> None:
    assert differ([want], [want], single=False) is None
    assert differ([got], [want], single=False) is not None


def test_rows_name_operators() -> None:
    names = {name for op in records().values() if is_public(op) for name in (op.name, op.full_name)}
    assert set(COMPARED_OTHERWISE) <= names
