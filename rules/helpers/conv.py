"""Convolutions with PyTorch's axes, padding and initialisation: modules, and functions of a weight in PyTorch's layout.

Source: https://docs.pytorch.org/docs/stable/nn.html#convolution-layers and `torch.nn.functional.conv2d`.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from .init import torch_init, uniform_bias
from .pooling import per_axis


def conv_padding(
    padding: int | Sequence[int] | str, kernel_size: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """PyTorch's `padding` of a convolution as (before, after) pairs; "same" puts the odd element after."""
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel_size, dilation, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    amounts = per_axis(0 if padding == "valid" else padding, len(kernel_size))
    return tuple((amount, amount) for amount in amounts)


def conv_nd(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """`F.conv1d`, `F.conv2d` and `F.conv3d`: the number of spatial axes is that of `weight`.

    Args:
      x: (N, in, *spatial) or (in, *spatial).
      weight: (out, in / groups, *kernel_size).
      bias: (out,).
    """
    rank = weight.ndim - 2
    dilation = per_axis(dilation, rank)
    y = lax.conv_general_dilated(
        x if x.ndim == weight.ndim else x[None],
        weight,
        window_strides=per_axis(stride, rank),
        padding=conv_padding(padding, weight.shape[2:], dilation),
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    if bias is not None:
        y += bias.reshape(-1, *[1] * rank)
    return y if x.ndim == weight.ndim else y[0]


def conv_transpose_nd(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """`F.conv_transpose1d`, `2d` and `3d`: the gradient of `conv_nd` with respect to its input.

    That is a convolution of the input, spread out by `stride`, with the flipped kernel; `padding` crops the result and
    `output_padding` extends it at the end.

    Args:
      x: (N, in, *spatial) or (in, *spatial).
      weight: (in, out / groups, *kernel_size).
      bias: (out,).
    """
    features_in, features_out, *kernel_size = weight.shape
    rank = len(kernel_size)
    dilation = per_axis(dilation, rank)
    # (in, out / groups, *k) -> (out, in / groups, *k), group by group
    kernel = weight.reshape(groups, features_in // groups, features_out, *kernel_size).swapaxes(1, 2)
    kernel = jnp.flip(kernel.reshape(groups * features_out, -1, *kernel_size), range(2, weight.ndim))
    sizes = zip(kernel_size, dilation, per_axis(padding, rank), per_axis(output_padding, rank), strict=True)
    y = lax.conv_general_dilated(
        x if x.ndim == weight.ndim else x[None],
        kernel,
        window_strides=(1,) * rank,
        padding=[(d * (k - 1) - p, d * (k - 1) - p + extra) for k, d, p, extra in sizes],
        lhs_dilation=per_axis(stride, rank),
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    if bias is not None:
        y += bias.reshape(-1, *[1] * rank)
    return y if x.ndim == weight.ndim else y[0]


class ConvNd(nnx.Conv):
    """`nnx.Conv` with PyTorch's constructor, axes `(N, C, *spatial)` at the border, and initialisation.

    The parameters are Flax's: `kernel` (*kernel_size, in / groups, out) and `bias` (out,).
    """

    rank: int  # of the spatial axes, set by the subclasses

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        rngs: nnx.Rngs,
    ):
        kernel_size, dilation = per_axis(kernel_size, self.rank), per_axis(dilation, self.rank)
        amounts = padding.upper() if isinstance(padding, str) else per_axis(padding, self.rank)
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            strides=per_axis(stride, self.rank),
            padding=amounts if padding_mode == "zeros" else "VALID",
            kernel_dilation=dilation,
            feature_group_count=groups,
            use_bias=bias,
            **torch_init(in_channels // groups * math.prod(kernel_size)),
            rngs=rngs,
        )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.stride, self.dilation, self.groups = self.strides, dilation, groups
        self.padding_mode = padding_mode
        if padding_mode != "zeros":
            self.border = conv_padding(padding, kernel_size, dilation)

    weight = property(lambda self: jnp.moveaxis(self.kernel[...], (-1, -2), (0, 1)))
    """The kernel in PyTorch's layout, (out, in / groups, *kernel_size)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Convolves `x`, (N, in, *spatial) or (in, *spatial)."""
        x = jnp.moveaxis(x, -self.rank - 1, -1)
        if self.padding_mode != "zeros":
            mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[self.padding_mode]
            x = jnp.pad(x, [(0, 0)] * (x.ndim - self.rank - 1) + [*self.border, (0, 0)], mode)
        return jnp.moveaxis(super().__call__(x), -1, -self.rank - 1)


class Conv1d(ConvNd):
    """PyTorch's `nn.Conv1d`: (N, in, L) or (in, L)."""

    rank = 1


class Conv2d(ConvNd):
    """PyTorch's `nn.Conv2d`: (N, in, H, W) or (in, H, W)."""

    rank = 2


class Conv3d(ConvNd):
    """PyTorch's `nn.Conv3d`: (N, in, D, H, W) or (in, D, H, W)."""

    rank = 3


class ConvTransposeNd(nnx.Module):
    """PyTorch's transposed convolutions, with `weight` in PyTorch's layout, (in, out / groups, *kernel_size).

    `nnx.ConvTranspose` has neither groups nor `output_padding`, and means something else by `padding`.
    """

    rank: int  # of the spatial axes, set by the subclasses

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        *,
        rngs: nnx.Rngs,
    ):
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = per_axis(kernel_size, self.rank)
        self.stride = per_axis(stride, self.rank)
        self.padding = per_axis(padding, self.rank)
        self.output_padding = per_axis(output_padding, self.rank)
        self.dilation = per_axis(dilation, self.rank)
        # PyTorch takes the weight's second axis, out / groups, for the fan_in of the initialisers.
        weight_init = nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform", in_axis=1, out_axis=0)
        weight_shape = (in_channels, out_channels // groups, *self.kernel_size)
        self.weight = nnx.Param(weight_init(rngs.params(), weight_shape))
        bias_init = uniform_bias(math.prod(weight_shape[1:]))
        self.bias = nnx.Param(bias_init(rngs.params(), (out_channels,))) if bias else nnx.data(None)

    def __call__(self, x: jax.Array, output_size: Sequence[int] | None = None) -> jax.Array:
        """Applies the layer to `x`, (N, in, *spatial) or (in, *spatial).

        Args:
          x: the input.
          output_size: the spatial shape of the result (or its whole shape), in place of `output_padding`.
        """
        extra: Sequence[int] = self.output_padding
        if output_size is not None:
            sizes = zip(x.shape[-self.rank :], self.kernel_size, self.stride, self.padding, self.dilation, strict=True)
            smallest = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, k, s, p, d in sizes]
            extra = [out - size for out, size in zip(output_size[-self.rank :], smallest, strict=True)]
        bias = None if self.bias is None else self.bias[...]
        return conv_transpose_nd(
            x, self.weight[...], bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(ConvTransposeNd):
    """PyTorch's `nn.ConvTranspose1d`: (N, in, L) or (in, L)."""

    rank = 1


class ConvTranspose2d(ConvTransposeNd):
    """PyTorch's `nn.ConvTranspose2d`: (N, in, H, W) or (in, H, W)."""

    rank = 2


class ConvTranspose3d(ConvTransposeNd):
    """PyTorch's `nn.ConvTranspose3d`: (N, in, D, H, W) or (in, D, H, W)."""

    rank = 3
