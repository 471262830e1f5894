"""Attention whose scores and mask are functions of the indices, as in PyTorch's FlexAttention.

A block mask is an array of booleans here: XLA has no kernel that skips blocks.
Source: https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .attention import softmax_or_zeros


def over_indices(function: Callable[..., Any], scores: tuple[jax.Array, ...], shape: tuple[int, ...]) -> jax.Array:
    """function(*scores, batch, head, query, key) at every index of `shape`; scores have that shape."""
    for axis in reversed(range(4)):
        first = [0] * len(scores)
        function = jax.vmap(function, in_axes=(*first, *(0 if i == axis else None for i in range(4))))
    return function(*scores, *map(jnp.arange, shape))


def index_mask(
    mask_mod: Callable[..., Any], batches: int | None, heads: int | None, queries: int, keys: int
) -> jax.Array:
    """mask_mod(batch, head, query, key) as booleans (batches, heads, queries, keys); None is 1."""
    return over_indices(mask_mod, (), (batches or 1, heads or 1, queries, keys))


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The function of indices that is true where all of them are."""
    return lambda *indices: functools.reduce(jnp.logical_and, [mask(*indices) for mask in mask_mods], jnp.array(True))


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The function of indices that is true where one of them is."""
    return lambda *indices: functools.reduce(jnp.logical_or, [mask(*indices) for mask in mask_mods], jnp.array(False))


def flex_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    score_mod: Callable[..., Any] | None = None,
    block_mask: jax.Array | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> jax.Array:
    """softmax(score_mod(query @ key^T * scale, batch, head, query index, key index)) @ value.

    Args:
      query: (N, H, L, E).
      key: (N or 1, H, S, E).
      value: (N or 1, H, S, V), as `key`.
      score_mod: from a score and its four indices to the score that counts.
      block_mask: broadcast to (N, H, L, S), True where a key takes part; a row without any gives zeros.
      scale: 1 / sqrt(E) if None.
      enable_gqa: whether key and value may have fewer heads, each shared by several of the query.
    """
    if enable_gqa:
        key, value = (jnp.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value))
    wide = jnp.promote_types(query.dtype, jnp.float32)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.astype(wide) @ jnp.swapaxes(key.astype(wide), -1, -2) * factor
    if score_mod is not None:
        scores = over_indices(score_mod, (scores,), scores.shape).astype(wide)
    if block_mask is not None:
        scores = jnp.where(block_mask, scores, -jnp.inf)
    return softmax_or_zeros(scores).astype(query.dtype) @ value
