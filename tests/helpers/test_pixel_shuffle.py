"""Pixel and channel shuffles against PyTorch, with sizes that tell the axes apart."""

import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import pixel_shuffle as helpers
from tests.helpers.compare import array, same_function, same_module


def test_pixel_shuffle_orders_channels_as_pytorch() -> None:
    for shape in ((2, 18, 2, 5), (18, 2, 5), (2, 3, 9, 1, 2)):
        same_function(lambda x: helpers.pixel_shuffle(x, 3), lambda x: F.pixel_shuffle(x, 3), array(*shape))


def test_pixel_unshuffle_orders_channels_as_pytorch() -> None:
    for shape in ((2, 3, 4, 6), (3, 4, 6)):
        same_function(lambda x: helpers.pixel_unshuffle(x, 2), lambda x: F.pixel_unshuffle(x, 2), array(*shape))


def test_channel_shuffle() -> None:
    same_function(
        lambda x: helpers.channel_shuffle(x, 3), lambda x: F.channel_shuffle(x, 3), array(2, 6, 4, 5), gradients=False
    )


@pytest.mark.parametrize(
    ("name", "argument", "shape"),
    [("PixelShuffle", 2, (2, 8, 2, 3)), ("PixelUnshuffle", 2, (2, 3, 4, 6)), ("ChannelShuffle", 2, (2, 6, 3, 2))],
)
def test_layer(name: str, argument: int, shape: tuple[int, ...]) -> None:
    layer = getattr(helpers, name)(argument, rngs=nnx.Rngs(0))
    same_module(layer, getattr(torch.nn, name)(argument), array(*shape), jit=True)
