"""One encoder layer and one decoder layer of a transformer, with PyTorch's names and order of operations.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html
"""

import functools
from collections.abc import Callable

import jax
from flax import nnx

from .attention import MultiheadAttention
from .init import uniform_init


class TransformerLayer(nnx.Module):
    """What encoder and decoder layers share: self-attention, a feedforward block, their norms and dropouts."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[jax.Array], jax.Array] = jax.nn.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rngs: nnx.Rngs,
    ):
        linear = functools.partial(nnx.Linear, use_bias=bias, rngs=rngs)
        norm = functools.partial(
            nnx.LayerNorm, d_model, epsilon=layer_norm_eps, use_bias=bias, use_fast_variance=False, rngs=rngs
        )
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, rngs=rngs
        )
        self.linear1 = linear(d_model, dim_feedforward, **uniform_init(d_model))
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.linear2 = linear(dim_feedforward, d_model, **uniform_init(dim_feedforward))
        self.norm1 = norm()
        self.norm2 = norm()
        self.dropout1 = nnx.Dropout(dropout, rngs=rngs)
        self.dropout2 = nnx.Dropout(dropout, rngs=rngs)
        self.norm_first = norm_first
        activations: dict[str, Callable[[jax.Array], jax.Array]] = {
            "relu": jax.nn.relu,
            "gelu": functools.partial(jax.nn.gelu, approximate=False),
        }
        self.activation = activations[activation] if isinstance(activation, str) else activation

    def self_attention(
        self, x: jax.Array, attn_mask: jax.Array | None, key_padding_mask: jax.Array | None, is_causal: bool
    ) -> jax.Array:
        """Self-attention and its dropout."""
        y, _ = self.self_attn(x, x, x, key_padding_mask, need_weights=False, attn_mask=attn_mask, is_causal=is_causal)
        return self.dropout1(y)

    def feedforward(self, x: jax.Array) -> jax.Array:
        """The feedforward block, without its last dropout."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(TransformerLayer):
    """PyTorch's `nn.TransformerEncoderLayer`: self-attention and feedforward, each with a residual and a norm."""

    def __call__(
        self,
        src: jax.Array,
        src_mask: jax.Array | None = None,
        src_key_padding_mask: jax.Array | None = None,
        is_causal: bool = False,
    ) -> jax.Array:
        """Maps `src` to an array of its shape; masks as in `MultiheadAttention`."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        x = src
        if self.norm_first:
            x = x + self.self_attention(self.norm1(x), *masks)
            return x + self.dropout2(self.feedforward(self.norm2(x)))
        x = self.norm1(x + self.self_attention(x, *masks))
        return self.norm2(x + self.dropout2(self.feedforward(x)))


class TransformerDecoderLayer(TransformerLayer):
    """PyTorch's `nn.TransformerDecoderLayer`: self-attention, attention to the encoder's output, feedforward."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[jax.Array], jax.Array] = jax.nn.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rngs: nnx.Rngs,
    ):
        super().__init__(
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            rngs=rngs,
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, rngs=rngs
        )
        self.norm3 = nnx.LayerNorm(d_model, epsilon=layer_norm_eps, use_bias=bias, use_fast_variance=False, rngs=rngs)
        self.dropout3 = nnx.Dropout(dropout, rngs=rngs)

    def cross_attention(
        self,
        x: jax.Array,
        memory: jax.Array,
        attn_mask: jax.Array | None,
        key_padding_mask: jax.Array | None,
        is_causal: bool,
    ) -> jax.Array:
        """Attention to the encoder's output, and its dropout."""
        y, _ = self.multihead_attn(
            x, memory, memory, key_padding_mask, need_weights=False, attn_mask=attn_mask, is_causal=is_causal
        )
        return self.dropout2(y)

    def __call__(
        self,
        tgt: jax.Array,
        memory: jax.Array,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        tgt_key_padding_mask: jax.Array | None = None,
        memory_key_padding_mask: jax.Array | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> jax.Array:
        """Maps `tgt`, with the encoder's output `memory`, to an array of its shape."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self.self_attention(self.norm1(x), *own)
            x = x + self.cross_attention(self.norm2(x), memory, *other)
            return x + self.dropout3(self.feedforward(self.norm3(x)))
        x = self.norm1(x + self.self_attention(x, *own))
        x = self.norm2(x + self.cross_attention(x, memory, *other))
        return self.norm3(x + self.dropout3(self.feedforward(x)))
