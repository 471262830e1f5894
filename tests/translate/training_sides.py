"""Runs a training program and its conversion from the same weights, in float64, and compares what they compute.

A source has two parts, divided by the line ``# train``: the first builds modules and data, the second makes the
optimizers (whose state has the dtype of the parameters) and trains. Between them the PyTorch modules are made random
and their state is loaded into the JAX modules. Compared are lists of numbers that the program collects (losses,
learning rates) and every parameter and buffer at its end.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import numpy as np
import torch

from t2j_lsp.contract import Options, Translation
from t2j_lsp.translate import translate
from t2j_lsp.weights import load_torch_state, torch_state

from .side_by_side import randomized

MARK = "# train\n"
TOLERANCE = 1e-9


@dataclass
class Run:
    """Both programs after they ran."""

    translation: Translation
    torch: dict[str, Any]
    jax: dict[str, Any]


def trained(
    source: str, modules: Sequence[str] = ("model",), lists: Sequence[str] = ("losses",), tolerance: float = TOLERANCE
) -> Run:
    """Run both sides and compare them. The conversion must be complete."""
    translation = translate(source, Options(x64=True))
    assert translation.gaps == (), [f"{g.span.line}: {g.name}: {g.reason}" for g in translation.gaps]
    before, fast = torch.get_default_dtype(), jax.config.values["jax_disable_most_optimizations"]
    torch.set_default_dtype(torch.float64)
    jax.config.update("jax_disable_most_optimizations", True)  # on arrays this small compiling is all the time there is
    try:
        with jax.enable_x64(True):
            run = _run(translation, source, modules)
            _compare(run, modules, lists, tolerance)
    finally:
        torch.set_default_dtype(before)
        jax.config.update("jax_disable_most_optimizations", fast)
    return run


def _run(translation: Translation, source: str, modules: Sequence[str]) -> Run:
    sides: list[dict[str, Any]] = []
    converted = translation.code.replace("jnp.float32", "jnp.float64")  # PyTorch's default, which is float64 here
    for code in (source, converted):
        assert code.count(MARK) == 1, code
        module = ModuleType("program")
        sys.modules["program"] = module  # dataclasses look their module up
        exec(compile(code.partition(MARK)[0], "<first part>", "exec"), module.__dict__)
        sides.append(module.__dict__)
    for name in modules:
        reference = randomized(_get(sides[0], name))
        load_torch_state(_get(sides[1], name), {k: v.numpy() for k, v in reference.state_dict().items()})
    for code, space in zip((source, converted), sides, strict=True):
        first, _, rest = code.partition(MARK)
        exec(compile("\n" * (first.count("\n") + 1) + rest, "<second part>", "exec"), space)
    return Run(translation, *sides)


def _get(space: dict[str, Any], name: str) -> Any:
    first, *rest = name.split(".")
    result = space[first]
    for part in rest:
        result = getattr(result, part)
    return result


def _compare(run: Run, modules: Sequence[str], lists: Sequence[str], tolerance: float) -> None:
    for name in lists:
        want, got = (np.array([float(x) for x in _get(s, name)]) for s in (run.torch, run.jax))
        assert len(want) > 0, name
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)
    for name in modules:
        want_state = {k: v.detach().numpy() for k, v in _get(run.torch, name).state_dict().items()}
        got_state = {k: np.asarray(v) for k, v in torch_state(_get(run.jax, name)).items()}
        assert want_state.keys() == got_state.keys()
        for key, got_value in got_state.items():
            if key.endswith("num_batches_tracked"):  # Flax doesn't count them
                continue
            scale = max(1.0, float(np.abs(want_state[key]).max()))
            np.testing.assert_allclose(
                got_value, want_state[key], rtol=0, atol=tolerance * scale, err_msg=f"{name}.{key}"
            )
