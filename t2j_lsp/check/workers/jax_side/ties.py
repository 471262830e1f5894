"""Orders equal elements by their index where ``jnp.sort`` counts down, too: see the torch side's `ties`.

The values are the same; the gradient of each goes where ``jnp.argsort`` says, and not the other way round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp


def in_order(original: Callable[..., Any]) -> Callable[..., Any]:
    """A sort of arrays that keeps the order of equal elements."""

    @functools.wraps(original)
    def call(a: Any, axis: int | None = -1, *args: Any, **kwargs: Any) -> Any:
        if args or not kwargs.get("descending") or axis is None or not jnp.ndim(a):
            return original(a, axis, *args, **kwargs)
        return jnp.take_along_axis(jnp.asarray(a), jnp.argsort(a, axis, descending=True), axis)

    return call


def install() -> None:
    """Replaces the function of ``jnp``. Called once, before user code is loaded."""
    namespace: Any = jnp
    namespace.sort = in_order(jnp.sort)
