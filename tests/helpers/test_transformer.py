"""Transformers against PyTorch: both orders of norms, masks, names of nested parameters, fresh parameters."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import transformer, transformer_layers
from tests.helpers.compare import array, copy_state, randomize, same_distribution, same_module

PADDING = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], bool)  # (2, 5)


def rngs() -> nnx.Rngs:
    return nnx.Rngs(0)


@pytest.mark.parametrize(
    "options",
    [
        dict(dropout=0.0),
        dict(dropout=0.0, norm_first=True, batch_first=True, activation="gelu", layer_norm_eps=0.1),
        dict(dropout=1.0, bias=False),
    ],
    ids=str,
)
def test_encoder_layer(options: dict[str, Any]) -> None:
    layer = transformer_layers.TransformerEncoderLayer(4, 2, 6, **options, rngs=rngs())
    same_module(layer, torch.nn.TransformerEncoderLayer(4, 2, 6, **options), array(3, 2, 4), jit=True)


@pytest.mark.parametrize(
    "options", [dict(dropout=0.0), dict(dropout=0.0, norm_first=True, batch_first=True), dict(dropout=1.0)], ids=str
)
def test_decoder_layer(options: dict[str, Any]) -> None:
    layer = transformer_layers.TransformerDecoderLayer(4, 2, 6, **options, rngs=rngs())
    reference = torch.nn.TransformerDecoderLayer(4, 2, 6, **options)
    tgt, memory = array(3, 2, 4), array(5, 2, 4)
    if options.get("batch_first"):
        tgt, memory = tgt.swapaxes(0, 1).copy(), memory.swapaxes(0, 1).copy()
    same_module(layer, reference, tgt, memory, jit=True)


class MaskedEncoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(4), enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5).double()
        padding = torch.zeros(2, 5).masked_fill(torch.from_numpy(PADDING), -torch.inf).double()
        return self.encoder(x, mask, padding, is_causal=True)


class MaskedEncoderNNX(nnx.Module):
    def __init__(self) -> None:
        layer = transformer_layers.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True, rngs=rngs())
        self.encoder = transformer.TransformerEncoder(layer, 2, nnx.LayerNorm(4, epsilon=1e-5, rngs=rngs()))

    def __call__(self, x: Any) -> Any:
        mask = transformer.generate_square_subsequent_mask(5)
        return self.encoder(x, mask, jnp.asarray(PADDING), is_causal=True)


def test_encoder_takes_causal_and_padding_masks() -> None:
    same_module(MaskedEncoderNNX(), MaskedEncoder(), array(2, 5, 4), jit=True)


class MaskedTransformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer = torch.nn.Transformer(4, 2, 2, 1, 6, 0.0, batch_first=True)

    def forward(self, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
        return self.transformer(
            src,
            tgt,
            tgt_mask=self.transformer.generate_square_subsequent_mask(3).double(),
            memory_key_padding_mask=torch.from_numpy(PADDING),
        )


class MaskedTransformerNNX(nnx.Module):
    def __init__(self) -> None:
        self.transformer = transformer.Transformer(4, 2, 2, 1, 6, 0.0, batch_first=True, rngs=rngs())

    def __call__(self, src: Any, tgt: Any) -> Any:
        return self.transformer(
            src,
            tgt,
            tgt_mask=self.transformer.generate_square_subsequent_mask(3),
            memory_key_padding_mask=jnp.asarray(PADDING),
        )


def test_transformer_with_masks() -> None:
    same_module(MaskedTransformerNNX(), MaskedTransformer(), array(2, 5, 4), array(2, 3, 4), jit=True)


def test_generate_square_subsequent_mask() -> None:
    want = torch.nn.Transformer.generate_square_subsequent_mask(4).numpy()
    np.testing.assert_array_equal(transformer.generate_square_subsequent_mask(4), want)


def test_copies_of_a_layer_share_values_but_neither_parameters_nor_random_numbers() -> None:
    layer = transformer_layers.TransformerEncoderLayer(4, 2, 6, 0.5, rngs=rngs())
    encoder = transformer.TransformerEncoder(layer, 2)
    first, second = encoder.layers
    np.testing.assert_array_equal(first.linear1.kernel[...], second.linear1.kernel[...])
    x = jnp.asarray(array(3, 2, 4))
    assert not np.allclose(first(x), second(x))
    first.linear1.kernel[...] = 0.0
    assert np.any(second.linear1.kernel[...] != 0.0)


def test_eval_switches_every_dropout_off() -> None:
    layer = transformer_layers.TransformerDecoderLayer(4, 2, 6, 0.5, rngs=rngs())
    reference = torch.nn.TransformerDecoderLayer(4, 2, 6, 0.5)
    same_module(layer, reference, array(3, 2, 4), array(5, 2, 4), train=False, jit=True)


def test_fresh_parameters_are_distributed_as_in_pytorch() -> None:
    layer = transformer_layers.TransformerEncoderLayer(96, 2, 128, rngs=rngs())
    same_distribution(layer, torch.nn.TransformerEncoderLayer(96, 2, 128))
    model = transformer.Transformer(96, 2, 1, 1, 128, rngs=rngs())
    same_distribution(model, torch.nn.Transformer(96, 2, 1, 1, 128))


def test_parameters_have_pytorchs_names() -> None:
    model = transformer.Transformer(4, 2, 1, 2, 6, rngs=rngs())
    copy_state(randomize(torch.nn.Transformer(4, 2, 1, 2, 6)), model)
    assert model.decoder.layers[1].multihead_attn.in_proj_weight.shape == (12, 4)
