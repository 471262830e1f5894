"""Runs a function in PyTorch and its conversion in JAX, and compares what comes out: values and gradients in float64.

Conversions are traced with their gradients under ``jax.jit``, where values decide nothing, and compiled many at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.extend.core import jaxpr_as_fun

TOLERANCE, GRADIENT_TOLERANCE = 1e-12, 1e-11  # of the largest absolute value in PyTorch's array, or of 1
BATCH = 40
"""Programs that are compiled as one."""
CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)

Report = Callable[[str | None, object], None]
"""Told what was observed (``values``, ``gradients``, ``jit``) and what is wrong with it; None if all agree."""
Compare = Callable[[list[Any], list[Any], str], str | None]
"""What JAX gave, what PyTorch gave, and whether these are ``values`` or ``gradients``."""


@dataclass
class Wanted:
    """PyTorch's outputs and, where it has them, gradients of its float64 inputs."""

    outputs: list[Any]
    gradients: list[Any] | None
    cotangents: list[Any]
    chosen: list[int]
    """Which inputs the gradients are of."""


def run_torch(function: Any, tensors: tuple[torch.Tensor, ...]) -> Wanted:
    """Runs with gradients of all float tensors; where PyTorch forbids that, of the first, or without any."""
    floats = [i for i, t in enumerate(tensors) if t.dtype is torch.float64]
    for chosen in (floats, floats[:1]):
        try:
            return _run_with_gradients(function, tensors, chosen)
        except RuntimeError as error:
            if "require" not in str(error):
                raise
    return _run_with_gradients(function, tensors, [])


def _run_with_gradients(function: Any, tensors: tuple[torch.Tensor, ...], chosen: list[int]) -> Wanted:
    inputs = [t.clone().requires_grad_(i in chosen) for i, t in enumerate(tensors)]
    torch.default_generator.manual_seed(0)
    outputs = flat(function(*inputs))
    rng = np.random.default_rng(0)
    cotangents = [rng.uniform(-1, 1, tuple(o.shape)) if isinstance(o, torch.Tensor) else None for o in outputs]
    total = [
        (o.real * torch.from_numpy(c)).sum()
        for o, c in zip(outputs, cotangents, strict=True)
        if isinstance(o, torch.Tensor) and o.requires_grad
    ]
    result = None
    if total:
        try:
            torch.stack(total).sum().backward()
            leaves = [inputs[i] for i in chosen]
            result = [to_numpy(torch.zeros_like(t) if t.grad is None else t.grad) for t in leaves]
        except RuntimeError:
            result = None  # PyTorch has no derivative of this operator
    return Wanted([to_numpy(o) if isinstance(o, torch.Tensor) else o for o in outputs], result, cotangents, chosen)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        return np.asarray(jnp.asarray(plain.float().numpy()).astype(jnp.bfloat16))
    return plain.numpy(force=True)


def flat(value: Any) -> list[Any]:
    """The leaves of nested lists and tuples."""
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


@dataclass
class Traced:
    """A conversion, ready to run: ``program`` maps arrays to (arrays among the outputs, gradients)."""

    report: Report
    compare: Compare
    wanted: Wanted
    program: Any
    arrays: list[Any]
    others: list[Any]
    """The outputs that are no arrays, with None in the places of the arrays."""

    def check(self, values: list[Any], gradients: list[Any] | None) -> None:
        arrays = iter(values)
        got = [next(arrays) if other is None else other for other in self.others]
        problem = self.compare(got, self.wanted.outputs, "values")
        if problem is not None:
            self.report("values", problem)
            return
        if gradients is not None:
            problem = self.compare(gradients, self.wanted.gradients or [], "gradients")
            if problem is not None:
                self.report("gradients", problem)
                return
        self.report(None, None)


def trace(
    function: Any, tensors: tuple[torch.Tensor, ...], wanted: Wanted, report: Report, compare: Compare | None = None
) -> Traced | None:
    """Traces values and gradients into one program; checks at once what can't be traced."""
    arrays = [jnp.asarray(to_numpy(t)) for t in tensors]
    chosen = wanted.chosen
    others: list[Any] = []

    def values(*inputs: Any) -> list[Any]:
        outputs = flat(function(*inputs))
        others[:] = [None if hasattr(out, "shape") else out for out in outputs]
        return [out for out in outputs if hasattr(out, "shape")]

    def program(*inputs: Any) -> tuple[list[Any], list[Any] | None]:
        def loss(floats: list[Any]) -> tuple[Any, list[Any]]:
            full = list(inputs)
            for i, value in zip(chosen, floats, strict=True):
                full[i] = value
            outputs = values(*full)
            cotangents = [c for c, other in zip(wanted.cotangents, others, strict=False) if other is None]
            pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=False) if c is not None and o.shape == c.shape]
            terms = [jnp.sum(jnp.real(o) * c) for o, c in pairs if jnp.issubdtype(o.dtype, jnp.inexact)]
            return sum(terms, start=jnp.zeros(())), outputs

        (_, outputs), gradients = jax.value_and_grad(loss, has_aux=True)([inputs[i] for i in chosen])
        return outputs, gradients

    def without_gradients(*inputs: Any) -> tuple[list[Any], None]:
        return values(*inputs), None

    compare = compare or _differ
    for attempt in [program, without_gradients] if wanted.gradients is not None and chosen else [without_gradients]:
        try:
            try:
                return Traced(report, compare, wanted, jax.jit(attempt).trace(*arrays), arrays, others)
            except CONCRETE as error:
                report("jit", error)
                results = attempt(*arrays)
                Traced(report, compare, wanted, None, arrays, others).check(*results)
                return None
        except Exception as error:  # noqa: BLE001 - whatever the converted code raises is the finding
            report("gradients" if attempt is program else "values", error)
    return None


def run_together(batch: list[Traced]) -> None:
    """Compiles many programs as one: most of the time goes into starting the compiler."""

    def all_of_them(inputs: list[list[Any]]) -> list[list[Any]]:
        return [jaxpr_as_fun(t.program.jaxpr)(*arrays) for t, arrays in zip(batch, inputs, strict=True)]

    results = jax.jit(all_of_them)([t.arrays for t in batch])
    for traced, leaves in zip(batch, results, strict=True):
        values, gradients = jax.tree.unflatten(traced.program.out_tree, leaves)
        traced.check(values, gradients)


def _differ(got: list[Any], want: list[Any], what: str) -> str | None:
    return differ(got, want, TOLERANCE if what == "values" else GRADIENT_TOLERANCE)


def differ(got: list[Any], want: list[Any], tolerance: float = TOLERANCE) -> str | None:
    """What differs, or None: the number of values, a shape, the kind of a dtype, where NaN is, a number."""
    if len(got) != len(want):
        return f"{len(got)} values, PyTorch has {len(want)}"
    for position, (g, w) in enumerate(zip(got, want, strict=True)):
        if w is None or isinstance(w, torch.dtype | torch.device | str):
            if w is None and g is not None:
                return f"value {position}: {g}, PyTorch has None"
            continue
        problem = arrays_differ(np.asarray(g), np.asarray(w), tolerance)
        if problem is not None:
            return f"value {position}: {problem}"
    return None


def arrays_differ(got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    """What differs of two arrays, or None."""
    if got.shape != want.shape:
        return f"shape {got.shape}, PyTorch has {want.shape}"
    if got.dtype.kind.replace("u", "i") != want.dtype.kind.replace("u", "i"):
        return f"dtype {got.dtype}, PyTorch has {want.dtype}"
    shown = f"{got.ravel()[:6]}, PyTorch has {want.ravel()[:6]}"
    if want.dtype.kind not in "fc":
        return None if np.array_equal(got, want) else shown
    finite, nan = np.isfinite(want), np.isnan(want)
    if not np.array_equal(np.isnan(got), nan):
        return f"NaN at other places: {shown}"
    infinite = ~finite & ~nan
    if not np.array_equal(got[infinite], want[infinite]):
        return f"other infinities: {shown}"
    if not finite.any():
        return None
    error = float(np.abs(got[finite] - want[finite]).max())
    scale = max(1.0, float(np.abs(want[finite]).max()))
    return None if error <= tolerance * scale else f"off by {error:.1e}: {shown}"
