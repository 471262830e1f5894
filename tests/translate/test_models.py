"""Whole models in the styles of public code, converted and run beside their PyTorch source.

Each file of ``models`` must convert without a gap (or with exactly the gaps listed here, with the reason). Every module
is compared in eval mode, and in training mode if it has one, and its object goes through ``nnx.jit``. All is compiled:
without jax.jit each operation is compiled by itself, which takes several times as long.
"""

from __future__ import annotations

import ast
import functools
import random
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from .model_cases import CASES, Case
from .side_by_side import Sides, compare, randomized, sides

torch.set_num_threads(1)
MODELS = Path(__file__).with_name("models")
FILES = sorted(path.stem for path in MODELS.glob("*.py"))

GAPS: dict[str, list[str]] = {}
"""File to the gaps it has, each as ``name: reason``."""


@pytest.fixture(autouse=True)
def float64_compiled_fast() -> Iterator[None]:
    """Float64 on, and XLA's optimizations off: on arrays this small compiling is all the time there is."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", before)


@functools.cache
def converted(file: str) -> Sides:
    return sides((MODELS / f"{file}.py").read_text(encoding="utf-8"), f"model_{file}")


def test_every_file_has_a_case() -> None:
    assert sorted({case.file for case in CASES}) == FILES


@pytest.mark.parametrize("file", FILES)
def test_a_file_converts_without_gaps_and_without_torch(file: str) -> None:
    both = converted(file)
    assert both.gaps() == GAPS.get(file, [])
    if file not in GAPS:
        assert "torch" not in _names(both.translation.code)


def _names(code: str) -> set[str]:
    """The names that code reads or imports; helpers speak of torch in their docstrings only."""
    nodes = list(ast.walk(ast.parse(code)))
    imported = {a.name.partition(".")[0] for n in nodes if isinstance(n, ast.Import) for a in n.names}
    imported |= {(n.module or "").partition(".")[0] for n in nodes if isinstance(n, ast.ImportFrom)}
    return imported | {n.id for n in nodes if isinstance(n, ast.Name)}


@pytest.mark.parametrize("file", FILES)
def test_a_converted_file_converts_to_itself(file: str) -> None:
    from t2j_lsp.translate import translate

    code = converted(file).translation.code
    assert translate(code).code == code


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_agrees_with_torch(case: Case) -> None:
    both = converted(case.file)
    reference = case.build(both.torch, {})
    for train in (False, True) if case.train and _has_modes(reference, both) else (False,):
        reference = randomized(case.build(both.torch, {}))
        module = case.build(both.jax, {"rngs": nnx.Rngs(0)})
        for _ in range(case.calls):
            random.seed(0)
            compare(
                reference,
                module,
                case.inputs,
                case.keywords,
                train=train,
                jit=case.jit,
                tolerance=case.tolerance,
            )


def _has_modes(module: torch.nn.Module, both: Sides) -> bool:
    """Whether training mode computes something else than eval mode."""
    kinds = (torch.nn.modules.batchnorm._NormBase, torch.nn.modules.dropout._DropoutNd, torch.nn.RNNBase)
    active = [m for m in module.modules() if isinstance(m, kinds)]
    return any(getattr(m, "p", getattr(m, "dropout", 1)) > 0 for m in active) or ".training" in both.translation.source


@pytest.mark.parametrize("case", [c for c in CASES if c.jit], ids=lambda case: case.id)
def test_a_model_goes_through_nnx_jit(case: Case) -> None:
    """Its static attributes can be hashed and compared, and no state of Python's decides on an array."""
    module = case.build(converted(case.file).jax, {"rngs": nnx.Rngs(0)})
    module.eval()
    arrays = {i: jnp.asarray(x) for i, x in enumerate(case.inputs) if isinstance(x, np.ndarray)}
    named = {name: jnp.asarray(x) for name, x in case.keywords.items() if isinstance(x, np.ndarray)}
    rest = {name: x for name, x in case.keywords.items() if name not in named}

    @nnx.jit
    def run(module: nnx.Module, arrays: dict[int, jax.Array], named: dict[str, jax.Array]) -> object:
        given = [arrays.get(i, x) for i, x in enumerate(case.inputs)]
        return jax.tree.leaves(module(*given, **named, **rest))

    assert "func.func public @main" in run.lower(module, arrays, named).as_text()
