"""Transformer encoder and decoder with PyTorch's parameter names, masks and order of operations.

Outside of training, PyTorch may take a fast path that zeroes the outputs of padded positions; there is none here.
Source: https://docs.pytorch.org/docs/stable/nn.html#transformer-layers
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx

from .transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer


def generate_square_subsequent_mask(sz: int) -> jax.Array:
    """The causal mask (sz, sz), to be added: minus infinity above the diagonal, 0 elsewhere."""
    return jnp.triu(jnp.full((sz, sz), -jnp.inf), 1)


def copies_of_layer(layer: nnx.Module, count: int) -> nnx.List:
    """Copies of a layer that start from the same parameters and draw different random numbers."""
    graphdef, state = nnx.split(layer)
    copies = [nnx.merge(graphdef, jax.tree.map(jnp.copy, state)) for _ in range(count)]
    for index, copy in enumerate(copies):
        for _, node in nnx.iter_graph(copy):
            if isinstance(node, nnx.RngStream):
                node.key[...] = jax.random.fold_in(node.key[...], index)
    return nnx.List(copies)


class TransformerEncoder(nnx.Module):
    """PyTorch's `nn.TransformerEncoder`: copies of a layer one after the other, and a norm."""

    def __init__(
        self,
        encoder_layer: nnx.Module,
        num_layers: int,
        norm: nnx.Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.layers = copies_of_layer(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def __call__(
        self,
        src: jax.Array,
        mask: jax.Array | None = None,
        src_key_padding_mask: jax.Array | None = None,
        is_causal: bool | None = None,
    ) -> jax.Array:
        """Maps `src` to an array of its shape; masks as in `MultiheadAttention`."""
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(nnx.Module):
    """PyTorch's `nn.TransformerDecoder`: copies of a layer one after the other, and a norm."""

    def __init__(
        self,
        decoder_layer: nnx.Module,
        num_layers: int,
        norm: nnx.Module | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.layers = copies_of_layer(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def __call__(
        self,
        tgt: jax.Array,
        memory: jax.Array,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        tgt_key_padding_mask: jax.Array | None = None,
        memory_key_padding_mask: jax.Array | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> jax.Array:
        """Maps `tgt`, with the encoder's output `memory`, to an array of its shape."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(nnx.Module):
    """PyTorch's `nn.Transformer`: an encoder and a decoder, matrices initialised by Glorot's uniform rule."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[jax.Array], jax.Array] = jax.nn.relu,
        custom_encoder: nnx.Module | None = None,
        custom_decoder: nnx.Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rngs: nnx.Rngs,
    ):
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> nnx.LayerNorm:
            return nnx.LayerNorm(d_model, epsilon=layer_norm_eps, use_bias=bias, use_fast_variance=False, rngs=rngs)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, rngs=rngs), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, rngs=rngs), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        init = nnx.initializers.xavier_uniform()
        for _, node in nnx.iter_graph(self):
            if isinstance(node, nnx.Param) and node.ndim > 1:
                node[...] = init(rngs.params(), node.shape, node.dtype)

    def __call__(
        self,
        src: jax.Array,
        tgt: jax.Array,
        src_mask: jax.Array | None = None,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        src_key_padding_mask: jax.Array | None = None,
        tgt_key_padding_mask: jax.Array | None = None,
        memory_key_padding_mask: jax.Array | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> jax.Array:
        """Encodes `src` and decodes `tgt`: an array of the shape of `tgt`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> jax.Array:
        """The causal mask (sz, sz), to be added."""
        return generate_square_subsequent_mask(sz)
