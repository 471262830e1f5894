"""Convolution helpers against torch: layouts, padding, groups, dilation, transposes, fresh parameters."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import conv
from tests.helpers.compare import array, same_distribution, same_function, same_module

SHAPES = {1: (2, 4, 9), 2: (2, 4, 9, 7), 3: (2, 4, 5, 6, 4)}

CONV_OPTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "1d with stride and padding": (1, {"kernel_size": 3, "stride": 2, "padding": 1}),
    "1d dilated": (1, {"kernel_size": 3, "dilation": 2, "groups": 2}),
    "2d with every size different": (
        2, {"kernel_size": (3, 2), "stride": (2, 1), "padding": (2, 1), "dilation": (1, 2)},
    ),
    "2d in groups without bias": (2, {"kernel_size": 3, "groups": 2, "bias": False}),
    "2d depthwise": (2, {"kernel_size": 3, "groups": 4, "padding": 1}),
    "2d padded to the same size with an even kernel": (2, {"kernel_size": (4, 3), "padding": "same"}),
    "2d padded to the same size and dilated": (2, {"kernel_size": (2, 3), "padding": "same", "dilation": (3, 2)}),
    "2d without padding by name": (2, {"kernel_size": 2, "padding": "valid"}),
    "2d reflected border": (2, {"kernel_size": 3, "padding": (2, 1), "padding_mode": "reflect"}),
    "2d replicated border": (2, {"kernel_size": 3, "padding": (2, 3), "padding_mode": "replicate"}),
    "2d circular border, same size": (2, {"kernel_size": (4, 3), "padding": "same", "padding_mode": "circular"}),
    "3d": (3, {"kernel_size": (2, 3, 1), "stride": (1, 2, 1), "padding": (1, 1, 0)}),
}  # fmt: skip

TRANSPOSE_OPTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "1d": (1, {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}),
    "2d with every size different": (
        2, {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2), "dilation": (2, 1)},
    ),
    "2d in groups without bias": (2, {"kernel_size": 4, "stride": 2, "padding": 1, "groups": 2, "bias": False}),
    "3d": (3, {"kernel_size": 2, "stride": 2}),
}  # fmt: skip


@pytest.mark.parametrize("case", CONV_OPTIONS)
def test_convolution_module_agrees_with_torch(case: str) -> None:
    rank, options = CONV_OPTIONS[case]
    name = f"Conv{rank}d"
    module = getattr(conv, name)(4, 8, **options, rngs=nnx.Rngs(0))
    same_module(module, getattr(torch.nn, name)(4, 8, **options), array(*SHAPES[rank]), jit=True)


@pytest.mark.parametrize("case", TRANSPOSE_OPTIONS)
def test_transposed_convolution_module_agrees_with_torch(case: str) -> None:
    rank, options = TRANSPOSE_OPTIONS[case]
    name = f"ConvTranspose{rank}d"
    module = getattr(conv, name)(4, 8, **options, rngs=nnx.Rngs(0))
    same_module(module, getattr(torch.nn, name)(4, 8, **options), array(*SHAPES[rank]), jit=True)


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d"])
def test_module_accepts_an_input_without_batch_axis_and_runs_eagerly(name: str) -> None:
    module = getattr(conv, name)(4, 6, 3, stride=2, padding=1, rngs=nnx.Rngs(0))
    same_module(module, getattr(torch.nn, name)(4, 6, 3, stride=2, padding=1), array(4, 6, 5))


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d"])
def test_static_attributes_can_be_hashed_as_static_arguments_of_jit_must(name: str) -> None:
    module = getattr(conv, name)(4, 6, [3, 2], stride=[2, 1], padding=[1, 0], rngs=nnx.Rngs(0))
    assert isinstance(hash(nnx.graphdef(module)), int)


def test_transposed_convolution_reaches_the_output_size_asked_for() -> None:
    module = conv.ConvTranspose2d(3, 2, 3, stride=2, padding=1, rngs=nnx.Rngs(0))
    x = jnp.asarray(array(1, 3, 4, 5))
    reference = torch.nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1).double()
    for size in [(7, 10), (1, 2, 8, 9)]:
        want = reference(torch.from_numpy(array(1, 3, 4, 5)), output_size=list(size[-2:]))
        assert module(x, output_size=size).shape == tuple(want.shape)


def test_function_agrees_with_torch_for_every_rank() -> None:
    weights = {1: array(6, 2, 3), 2: array(6, 2, 3, 2), 3: array(6, 2, 2, 1, 3)}
    for rank, weight in weights.items():
        reference = getattr(F, f"conv{rank}d")
        same_function(
            lambda x, w, b: conv.conv_nd(x, w, b, 2, 1, 1, 2),
            lambda x, w, b, f=reference: f(x, w, b, 2, 1, 1, 2),
            array(*SHAPES[rank]), weight, array(6), jit=True,
        )  # fmt: skip


def test_function_pads_by_name_and_takes_one_element_tuples() -> None:
    same_function(
        lambda x, w: conv.conv_nd(x, w, padding="same", dilation=(2,)),
        lambda x, w: F.conv2d(x, w, padding="same", dilation=(2,)),
        array(4, 9, 7), array(6, 4, 2, 3), jit=True,
    )  # fmt: skip


def test_transposed_function_agrees_with_torch() -> None:
    for rank, weight in {1: array(4, 3, 3), 2: array(4, 3, 3, 2), 3: array(4, 3, 2, 1, 3)}.items():
        reference = getattr(F, f"conv_transpose{rank}d")
        same_function(
            lambda x, w, b: conv.conv_transpose_nd(x, w, b, 2, 1, 1, 2),
            lambda x, w, b, f=reference: f(x, w, b, 2, 1, 1, 2),
            array(*SHAPES[rank]), weight, array(6), jit=True,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d"])
def test_fresh_parameters_are_distributed_as_in_torch(name: str) -> None:
    torch.manual_seed(0)
    options = {"kernel_size": 3, "groups": 2}
    module = getattr(conv, name)(40, 1000, **options, rngs=nnx.Rngs(0))
    same_distribution(module, getattr(torch.nn, name)(40, 1000, **options))


def test_attributes_that_torch_code_reads() -> None:
    module = conv.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, rngs=nnx.Rngs(0))
    reference = torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
    for name in ["in_channels", "out_channels", "kernel_size", "stride", "dilation", "groups", "padding_mode"]:
        assert getattr(module, name) == getattr(reference, name), name
    assert module.weight.shape == tuple(reference.weight.shape)
    np.testing.assert_array_equal(module.weight[5, 1, 2, 0], module.kernel[2, 0, 1, 5])
    assert isinstance(module, nnx.Conv)


FIRST: dict[str, Callable[[int, int], tuple[nnx.Module, torch.nn.Module]]] = {
    "a convolution in groups": lambda i, o: (
        conv.ChannelsFirstConv(i, o, (3, 2), strides=(2, 1), padding=1, feature_group_count=2, rngs=nnx.Rngs(0)),
        torch.nn.Conv2d(i, o, (3, 2), stride=(2, 1), padding=1, groups=2),
    ),
    "a transposed convolution": lambda i, o: (
        conv.ChannelsFirstConvTranspose(i, o, (3, 2), strides=2, padding=((2, 2), (1, 1)), rngs=nnx.Rngs(0)),
        torch.nn.ConvTranspose2d(i, o, (3, 2), stride=2),
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_flaxs_convolution_with_pytorchs_axes_agrees_with_torch(name: str) -> None:
    same_distribution(*FIRST[name](40, 1000))
    module, reference = FIRST[name](4, 6)
    same_module(module, reference, array(2, 4, 9, 7), jit=True)
    same_module(module, reference, array(4, 9, 7))
