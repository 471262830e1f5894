"""Gives the vectors of ``eigh`` and ``svd`` the signs that the torch side gives them, too: see its `signs`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def _signs(columns: jax.Array) -> jax.Array:
    """The factor of each column: 1 or -1; of complex ones, whose phases are open, 1."""
    if jnp.iscomplexobj(columns) or not columns.size:
        return jnp.ones_like(columns[..., 0, :])
    places = jnp.arange(columns.shape[-2], dtype=columns.dtype)
    side = (jax.lax.stop_gradient(columns) * jnp.cos(1 + places * places)[:, None]).sum(-2)
    return jnp.where(side < 0, -1.0, 1.0).astype(columns.dtype)


def _eigh(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        values, vectors = result
        return type(result)(values, vectors * _signs(vectors)[..., None, :])

    return call


def _svd(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not hasattr(result, "_fields"):
            return result  # Only the values.
        left, values, right = result
        count = values.shape[-1]
        signs = _signs(left[..., :count])
        left = jnp.concatenate([left[..., :count] * signs[..., None, :], left[..., count:]], -1)
        right = jnp.concatenate([right[..., :count, :] * signs[..., :, None], right[..., count:, :]], -2)
        return type(result)(left, values, right)

    return call


def install() -> None:
    """Replaces the functions of ``jnp.linalg``. Called once, before user code is loaded."""
    namespace: Any = jnp.linalg
    namespace.eigh = _eigh(jnp.linalg.eigh)
    namespace.svd = _svd(jnp.linalg.svd)
