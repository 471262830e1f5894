"""Attention with PyTorch's axes, masks and parameters.

`jax.nn.dot_product_attention` has its heads on another axis and spreads a fully masked row evenly, where PyTorch gives
zeros; Flax's layer has separate projections and returns no weights.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .init import uniform_fan_in


def softmax_or_zeros(scores: jax.Array) -> jax.Array:
    """Softmax over the last axis; a row of minus infinities gives zeros."""
    masked = jnp.all(scores == -jnp.inf, axis=-1, keepdims=True)
    return jnp.where(masked, 0, jax.nn.softmax(jnp.where(masked, 0, scores), axis=-1))


def scaled_dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    attn_mask: jax.Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    rngs: nnx.Rngs | nnx.RngStream | None = None,
) -> jax.Array:
    """softmax(query @ key^T * scale + mask) @ value, over axes (..., heads, length, features).

    Args:
      query: (..., H, L, E).
      key: (..., H, S, E).
      value: (..., H, S, V), as `key`.
      attn_mask: broadcast to (..., H, L, S): booleans, True where a key takes part, or numbers that are added.
      dropout_p: rate of dropout of the weights, with a key from `rngs`; acts wherever it is not 0.
      is_causal: query i sees the keys 0 to i.
      scale: 1 / sqrt(E) if None.
      enable_gqa: whether key and value may have fewer heads, each shared by several of the query.
    """
    if enable_gqa:
        key, value = (jnp.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ jnp.swapaxes(key, -1, -2)
    scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))  # of 16-bit floats too
    if is_causal:
        scores = jnp.where(jnp.tri(scores.shape[-2], scores.shape[-1], dtype=bool), scores, -jnp.inf)
    if attn_mask is None:
        weights = jax.nn.softmax(scores, axis=-1)
    elif attn_mask.dtype == bool:
        weights = softmax_or_zeros(jnp.where(attn_mask, scores, -jnp.inf))
    else:
        weights = softmax_or_zeros(scores + attn_mask)
    weights = weights.astype(query.dtype)
    if dropout_p > 0:
        weights = nnx.Dropout(dropout_p)(weights, rngs=rngs)
    return weights @ value


def additive_mask(mask: jax.Array, dtype: jnp.dtype, extra: int = 0) -> jax.Array:
    """A mask of `nn.MultiheadAttention` as numbers to add: minus infinity where booleans are True.

    The last `extra` keys, which are appended, are not masked.
    """
    if extra:
        mask = jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, extra)])
    return jnp.where(mask, jnp.asarray(-jnp.inf, dtype), 0) if mask.dtype == bool else mask.astype(dtype)


class MultiheadAttention(nnx.Module):
    """PyTorch's `nn.MultiheadAttention`: returns the output and the attention weights.

    `in_proj_weight` (3 * embed_dim, embed_dim) holds the rows of query, key and value. With `kdim` or `vdim` there are
    `q_proj_weight`, `k_proj_weight` and `v_proj_weight` instead.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        rngs: nnx.Rngs,
    ):
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.batch_first, self.dropout = batch_first, dropout
        if dropout > 0:
            self.weight_dropout = nnx.Dropout(dropout, rngs=rngs)
        init = nnx.initializers.xavier_uniform()
        self._packed = (kdim is None or kdim == embed_dim) and (vdim is None or vdim == embed_dim)
        if self._packed:
            self.in_proj_weight = nnx.Param(init(rngs.params(), (3 * embed_dim, embed_dim), jnp.float32))
        else:
            self.q_proj_weight = nnx.Param(init(rngs.params(), (embed_dim, embed_dim), jnp.float32))
            self.k_proj_weight = nnx.Param(init(rngs.params(), (embed_dim, self.kdim), jnp.float32))
            self.v_proj_weight = nnx.Param(init(rngs.params(), (embed_dim, self.vdim), jnp.float32))
        self._biased = bias
        self.in_proj_bias = nnx.Param(jnp.zeros(3 * embed_dim, jnp.float32)) if bias else nnx.data(None)
        self.out_proj = nnx.Linear(embed_dim, embed_dim, use_bias=bias, kernel_init=uniform_fan_in, rngs=rngs)
        self.add_bias_kv, self.add_zero_attn = add_bias_kv, add_zero_attn
        if add_bias_kv:
            normal = nnx.initializers.xavier_normal()
            self.bias_k = nnx.Param(normal(rngs.params(), (1, 1, embed_dim), jnp.float32))
            self.bias_v = nnx.Param(normal(rngs.params(), (1, 1, embed_dim), jnp.float32))

    def __call__(
        self,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        key_padding_mask: jax.Array | None = None,
        need_weights: bool = True,
        attn_mask: jax.Array | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[jax.Array, jax.Array | None]:
        """Attends from `query` to `key` and `value`.

        Args:
          query: (L, N, E), (N, L, E) with `batch_first`, or (L, E); `key` and `value` likewise with length S.
          key_padding_mask: (N, S) or (S,): booleans, True where a key is left out, or numbers that are added.
          need_weights: whether to return the weights, too. A row with all keys left out is NaN then, and 0 otherwise.
          attn_mask: (L, S) or (N * heads, L, S): booleans, True where a key is left out, or numbers that are added.
          average_attn_weights: whether to return the mean of the heads' weights.
          is_causal: says that `attn_mask` is the causal mask, which must be given.
        Returns:
          The output in the layout of `query`, and the weights (N, L, S), (N, heads, L, S), or without N.
        """
        if is_causal and attn_mask is None:
            raise ValueError("is_causal needs attn_mask: it only says that the mask is causal")
        batched = query.ndim == 3
        if not batched:
            query, key, value = query[None], key[None], value[None]
        elif not self.batch_first:
            query, key, value = (jnp.swapaxes(x, 0, 1) for x in (query, key, value))
        if self._packed:
            matrices = jnp.split(self.in_proj_weight[...], 3)
        else:
            matrices = [self.q_proj_weight[...], self.k_proj_weight[...], self.v_proj_weight[...]]
        biases: Any = jnp.split(self.in_proj_bias[...], 3) if self._biased else (0, 0, 0)
        q, k, v = (
            jnp.swapaxes((x @ matrix.T + bias).reshape(*x.shape[:2], self.num_heads, self.head_dim), 1, 2)
            for x, matrix, bias in zip((query, key, value), matrices, biases, strict=True)
        )
        if self.add_bias_kv:
            k, v = self._append(k, self.bias_k[...]), self._append(v, self.bias_v[...])
        if self.add_zero_attn:
            k, v = self._append(k, jnp.zeros(self.embed_dim)), self._append(v, jnp.zeros(self.embed_dim))
        scores = (q / math.sqrt(self.head_dim)) @ jnp.swapaxes(k, -1, -2)
        if attn_mask is not None:
            mask = additive_mask(attn_mask, scores.dtype, self.add_bias_kv + self.add_zero_attn)
            scores += mask if mask.ndim == 2 else mask.reshape(-1, self.num_heads, *mask.shape[1:])
        if key_padding_mask is not None:
            mask = additive_mask(key_padding_mask, scores.dtype, self.add_bias_kv + self.add_zero_attn)
            scores += mask.reshape(-1, 1, 1, mask.shape[-1])
        weights = jax.nn.softmax(scores, axis=-1) if need_weights else softmax_or_zeros(scores)
        if self.dropout > 0:
            weights = self.weight_dropout(weights)
        output = self.out_proj(jnp.swapaxes(weights @ v, 1, 2).reshape(query.shape))
        if need_weights and average_attn_weights:
            weights = jnp.mean(weights, axis=1)
        if not batched:
            return output[0], weights[0] if need_weights else None
        return output if self.batch_first else jnp.swapaxes(output, 0, 1), weights if need_weights else None

    def _append(self, x: jax.Array, last: jax.Array) -> jax.Array:
        """Keys or values (N, heads, length, head_dim) with one more that is the same for all examples."""
        shape = (x.shape[0], self.num_heads, 1, self.head_dim)
        last = jnp.broadcast_to(last.reshape(1, self.num_heads, 1, self.head_dim), shape)
        return jnp.concatenate([x, last.astype(x.dtype)], axis=2)
