"""`F.multi_head_attention_forward`: what `nn.MultiheadAttention` computes, of parameters that are given.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .attention import additive_mask, softmax_or_zeros


def multi_head_attention_forward(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    num_heads: int,
    projections: Sequence[jax.Array],
    in_proj_bias: jax.Array | None,
    out_proj_weight: jax.Array,
    out_proj_bias: jax.Array | None,
    bias_k: jax.Array | None = None,
    bias_v: jax.Array | None = None,
    add_zero_attn: bool = False,
    dropout_p: float = 0.0,
    key_padding_mask: jax.Array | None = None,
    need_weights: bool = True,
    attn_mask: jax.Array | None = None,
    average_attn_weights: bool = True,
    *,
    rngs: nnx.Rngs | nnx.RngStream | None = None,
) -> tuple[jax.Array, jax.Array | None]:
    """Attends from `query` to `key` and `value`, and returns the output and the weights.

    Args:
      query: (L, N, E) or (L, E); `key` and `value` likewise with length S.
      projections: the matrices of query, key and value, (E, features) each.
      in_proj_bias: (3 * E,), and `out_proj_weight` (E, E).
      bias_k: (1, 1, E), one more key for all examples, with the value `bias_v`; `add_zero_attn` adds one of zeros.
      dropout_p: rate of dropout of the weights, with a key from `rngs`; acts wherever it is not 0.
      key_padding_mask: (N, S) or (S,): booleans, True where a key is left out, or numbers that are added.
      need_weights: whether to return the weights, too. A row with all keys left out is NaN then, and 0 otherwise.
      attn_mask: (L, S) or (N * heads, L, S): booleans, True where a key is left out, or numbers that are added.
      average_attn_weights: whether to return the mean of the heads' weights.
    Returns:
      The output in the shape of `query`, and the weights (N, L, S), (N, heads, L, S), or without N.
    """
    batched = query.ndim == 3
    if not batched:
        query, key, value = (x[:, None] for x in (query, key, value))
    biases: Any = (0, 0, 0) if in_proj_bias is None else jnp.split(in_proj_bias, 3)
    q, k, v = (x @ matrix.T + b for x, matrix, b in zip((query, key, value), projections, biases, strict=True))
    extra = (bias_k is not None) + add_zero_attn
    if bias_k is not None and bias_v is not None:
        k, v = one_more(k, bias_k), one_more(v, bias_v)
    if add_zero_attn:
        k, v = one_more(k, jnp.zeros_like(k[:1])), one_more(v, jnp.zeros_like(v[:1]))
    q, k, v = (x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2, 0, 3) for x in (q, k, v))
    scores = (q / math.sqrt(q.shape[-1])) @ jnp.swapaxes(k, -1, -2)
    if attn_mask is not None:
        mask = additive_mask(attn_mask, scores.dtype, extra)
        scores += mask if mask.ndim == 2 else mask.reshape(-1, num_heads, *mask.shape[1:])
    if key_padding_mask is not None:
        mask = additive_mask(key_padding_mask, scores.dtype, extra)
        scores += mask.reshape(-1, 1, 1, mask.shape[-1])
    weights = jax.nn.softmax(scores, axis=-1) if need_weights else softmax_or_zeros(scores)
    if dropout_p > 0:
        weights = nnx.Dropout(dropout_p)(weights, rngs=rngs)
    output = (weights @ v).transpose(2, 0, 1, 3).reshape(query.shape) @ out_proj_weight.T
    output = output if out_proj_bias is None else output + out_proj_bias
    shown = jnp.mean(weights, axis=1) if average_attn_weights else weights
    if not batched:
        output, shown = output[:, 0], shown[0]
    return output, shown if need_weights else None


def one_more(x: jax.Array, last: jax.Array) -> jax.Array:
    """Keys or values (S, N, E) with one more, (1, 1, E) for all examples."""
    return jnp.concatenate([x, jnp.broadcast_to(last, (1, *x.shape[1:])).astype(x.dtype)])
