"""What functions of ``jax.random`` give while a tape runs: by the tape's numbers, from their bound arguments.

Each gives None where the tape has nothing for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np


class Tape(Protocol):
    """Where numbers come from."""

    def take(self, kind: str, shape: tuple[int, ...], p: Any = None) -> Any | None:
        """The next draw of a kind and shape; None if there is none. ``p`` is what it depends on."""


def _float(values: Any, dtype: Any) -> Any:
    return jnp.asarray(values, jax.dtypes.canonicalize_dtype(float if dtype is None else dtype))


def _shape(arguments: dict[str, Any], *others: Any) -> tuple[int, ...]:
    shape = arguments.get("shape")
    if shape is None:
        return tuple(np.broadcast_shapes(*(jnp.shape(o) for o in others)))
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _spread(values: Any, shape: tuple[int, ...]) -> Any:
    """Parameters of numbers of a shape, one for each of them, and nothing that gradients flow through."""
    if isinstance(values, jax.core.Tracer):
        return jnp.broadcast_to(jax.lax.stop_gradient(values), shape)
    return np.broadcast_to(np.asarray(values), shape)


def _bernoulli(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("bernoulli", _shape(arguments, arguments["p"]), arguments["p"])
    return None if drawn is None else jnp.asarray(drawn)


def _uniform(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("uniform", _shape(arguments))
    if drawn is None:
        return None
    low, high = arguments["minval"], arguments["maxval"]
    return _float(low + (high - low) * _float(drawn, arguments["dtype"]), arguments["dtype"])


def _normal(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("normal", _shape(arguments))
    return None if drawn is None else _float(drawn, arguments["dtype"])


def _truncated_normal(tape: Tape, arguments: dict[str, Any]) -> Any:
    """By uniform numbers, as torch and JAX draw it."""
    lower, upper = (jnp.asarray(arguments[name], float) for name in ("lower", "upper"))
    drawn = tape.take("uniform", _shape(arguments, lower, upper))
    if drawn is None:
        return None
    low, high = jax.lax.erf(lower / math.sqrt(2)), jax.lax.erf(upper / math.sqrt(2))
    return _float(math.sqrt(2) * jax.lax.erf_inv(low + (high - low) * _float(drawn, None)), arguments["dtype"])


def _orthogonal(tape: Tape, arguments: dict[str, Any]) -> Any:
    """By the QR decomposition of normal numbers, as torch and JAX draw it."""
    rows, columns = arguments["n"], arguments["n"] if arguments["m"] is None else arguments["m"]
    drawn = tape.take("normal", (*_shape(arguments), max(rows, columns), min(rows, columns)))
    if drawn is None:
        return None
    q, r = jnp.linalg.qr(_float(drawn, arguments["dtype"]))
    q *= jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return q.mT if rows < columns else q


def _randint(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("integers", _shape(arguments), (arguments["minval"], arguments["maxval"]))
    return None if drawn is None else jnp.asarray(drawn, jax.dtypes.canonicalize_dtype(arguments["dtype"] or int))


def _permutation(tape: Tape, arguments: dict[str, Any]) -> Any:
    x, axis = arguments["x"], arguments.get("axis", 0)
    size = int(x) if jnp.ndim(x) == 0 else x.shape[axis]
    drawn = tape.take("permutation", (size,))
    if drawn is None:
        return None
    return jnp.asarray(drawn) if jnp.ndim(x) == 0 else jnp.take(x, jnp.asarray(drawn), axis=axis)


def _exponential(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("exponential", _shape(arguments))
    return None if drawn is None else _float(drawn, arguments["dtype"])


def _cauchy(tape: Tape, arguments: dict[str, Any]) -> Any:
    draws = tape.take("uniform", _shape(arguments))
    return None if draws is None else jnp.tan(jnp.pi * (_float(draws, arguments["dtype"]) - 0.5))


def _poisson(tape: Tape, arguments: dict[str, Any]) -> Any:
    shape = _shape(arguments, arguments["lam"])
    draws = tape.take("poisson", shape, _spread(arguments["lam"], shape))
    return None if draws is None else jnp.asarray(draws, jax.dtypes.canonicalize_dtype(arguments["dtype"] or int))


def _gamma(tape: Tape, arguments: dict[str, Any]) -> Any:
    """Common numbers with the derivative by the concentration that torch's side has."""
    shape = _shape(arguments, arguments["a"])
    a = arguments["a"]
    fixed = _spread(a, shape)
    draws = tape.take("gamma", shape, fixed)
    slope = None if draws is None else tape.take("slope of gamma", shape, (fixed, draws))
    if slope is None:
        return None
    return _float(draws, arguments["dtype"]) + _float(slope, arguments["dtype"]) * (a - jax.lax.stop_gradient(a))


def _dirichlet(tape: Tape, arguments: dict[str, Any]) -> Any:
    """By gamma numbers, as on torch's side."""
    alpha, shape = arguments["alpha"], arguments["shape"]
    whole = jnp.shape(alpha) if shape is None else (*shape, jnp.shape(alpha)[-1])
    draws = _gamma(tape, {"a": alpha, "shape": whole, "dtype": arguments["dtype"]})
    return None if draws is None else draws / draws.sum(-1, keepdims=True)


def _beta(tape: Tape, arguments: dict[str, Any]) -> Any:
    """The first of two Dirichlet numbers, as torch draws it."""
    shape = _shape(arguments, arguments["a"], arguments["b"])
    alpha = jnp.stack([jnp.broadcast_to(arguments[name], shape) for name in ("a", "b")], -1)
    draws = _dirichlet(tape, {"alpha": alpha, "shape": shape, "dtype": arguments["dtype"]})
    return None if draws is None else draws[..., 0]


def _binomial(tape: Tape, arguments: dict[str, Any]) -> Any:
    shape = _shape(arguments, arguments["n"], arguments["p"])
    parameters = [_spread(arguments[name], shape) for name in ("n", "p")]
    traced = any(isinstance(values, jax.core.Tracer) for values in parameters)
    draws = tape.take("binomial", shape, jnp.stack(parameters) if traced else np.stack(parameters))
    return None if draws is None else _float(draws, arguments["dtype"])


def _geometric(tape: Tape, arguments: dict[str, Any]) -> Any:
    """By uniform numbers, as on torch's side."""
    drawn = tape.take("uniform", _shape(arguments, arguments["p"]))
    if drawn is None:
        return None
    numbers = jnp.ceil(jnp.log(_float(drawn, None)) / jnp.log1p(-jnp.asarray(arguments["p"], float)))
    return jnp.asarray(numbers, jax.dtypes.canonicalize_dtype(arguments["dtype"] or int))


def _gumbel(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("exponential", _shape(arguments))
    return None if drawn is None else -jnp.log(_float(drawn, arguments["dtype"]))


def _categorical(tape: Tape, arguments: dict[str, Any]) -> Any:
    """The index of the largest sum of a logit and a Gumbel number, as without a tape; or of several of the largest."""
    logits, axis = jnp.asarray(arguments["logits"]), arguments["axis"]
    axis -= logits.ndim if axis >= 0 else 0
    batch = [n for i, n in enumerate(logits.shape) if i != axis % logits.ndim]
    shape = _shape(arguments, jnp.zeros(batch))
    before = shape[: len(shape) - len(batch)]
    if not arguments["replace"]:
        drawn = tape.take("exponential", logits.shape)
        if drawn is None:
            return None
        scores = jnp.moveaxis(logits - jnp.log(_float(drawn, logits.dtype)), axis, -1)
        return jnp.moveaxis(jax.lax.top_k(scores, math.prod(before))[1], -1, 0).reshape(shape)
    whole = list(shape[len(shape) - len(batch) :])
    whole.insert(axis % logits.ndim, logits.shape[axis])
    drawn = tape.take("exponential", tuple(whole) if math.prod(before) == 1 else (*before, *whole))
    if drawn is None:
        return None
    numbers = _float(drawn, logits.dtype).reshape((*before, *whole))
    return jnp.argmax(logits - jnp.log(numbers), axis)


DRAWS: dict[str, Callable[[Tape, dict[str, Any]], Any]] = {
    "bernoulli": _bernoulli,
    "uniform": _uniform,
    "normal": _normal,
    "truncated_normal": _truncated_normal,
    "orthogonal": _orthogonal,
    "randint": _randint,
    "permutation": _permutation,
    "exponential": _exponential,
    "cauchy": _cauchy,
    "poisson": _poisson,
    "gamma": _gamma,
    "beta": _beta,
    "dirichlet": _dirichlet,
    "binomial": _binomial,
    "geometric": _geometric,
    "gumbel": _gumbel,
    "categorical": _categorical,
}
