"""Convolutions with PyTorch's axes, padding and initialisation: modules, and functions of a weight in PyTorch's layout.

Source: https://docs.pytorch.org/docs/stable/nn.html#convolution-layers and `torch.nn.functional.conv2d`.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .init import uniform_init
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
    y = jax.lax.conv_general_dilated(
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
    y = jax.lax.conv_general_dilated(
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


def conv(inputs: int, outputs: int, kernel: Sequence[int], **options: Any) -> nnx.Conv:
    """`nnx.Conv` with PyTorch's initial values: kernel and bias uniform in +-1/sqrt(fan_in)."""
    fan_in = math.prod(kernel) * (inputs // options.get("feature_group_count", 1))
    return nnx.Conv(inputs, outputs, kernel, **uniform_init(fan_in), **options)


def torch_conv(
    rank: int,
    in_channels: int,
    out_channels: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    bias: bool = True,
    *,
    rngs: nnx.Rngs,
) -> nnx.Conv:
    """`nnx.Conv` over `rank` axes by PyTorch's arguments, with its initial values; channels are the last axis."""
    kernel = per_axis(kernel_size, rank)
    return nnx.Conv(
        in_channels,
        out_channels,
        kernel,
        strides=per_axis(stride, rank),
        padding=padding.upper() if isinstance(padding, str) else per_axis(padding, rank),
        kernel_dilation=per_axis(dilation, rank),
        feature_group_count=groups,
        use_bias=bias,
        **uniform_init(in_channels // groups * math.prod(kernel)),
        rngs=rngs,
    )


def torch_conv1d(*args: Any, **options: Any) -> nnx.Conv:
    """`nnx.Conv` of (N, W, in), by the arguments of PyTorch's `nn.Conv1d`."""
    return torch_conv(1, *args, **options)


def torch_conv2d(*args: Any, **options: Any) -> nnx.Conv:
    """`nnx.Conv` of (N, H, W, in), by the arguments of PyTorch's `nn.Conv2d`."""
    return torch_conv(2, *args, **options)


def torch_conv3d(*args: Any, **options: Any) -> nnx.Conv:
    """`nnx.Conv` of (N, D, H, W, in), by the arguments of PyTorch's `nn.Conv3d`."""
    return torch_conv(3, *args, **options)


def transposed_conv(inputs: int, outputs: int, kernel: Sequence[int], **options: Any) -> nnx.ConvTranspose:
    """`nnx.ConvTranspose` with PyTorch's kernel and initial values, uniform in +-1/sqrt(fan_in)."""
    options |= uniform_init(math.prod(kernel) * outputs)
    return nnx.ConvTranspose(inputs, outputs, kernel, transpose_kernel=True, **options)


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
        kernel, dilations = per_axis(kernel_size, self.rank), per_axis(dilation, self.rank)
        amounts = padding.upper() if isinstance(padding, str) else per_axis(padding, self.rank)
        super().__init__(
            in_channels,
            out_channels,
            kernel,
            strides=per_axis(stride, self.rank),
            padding=amounts if padding_mode == "zeros" else "VALID",
            kernel_dilation=dilations,
            feature_group_count=groups,
            use_bias=bias,
            **uniform_init(in_channels // groups * math.prod(kernel)),
            rngs=rngs,
        )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.stride, self.dilation, self.groups = self.strides, dilations, groups
        self.padding_mode = padding_mode
        if padding_mode != "zeros":
            self.border = conv_padding(padding, kernel, dilations)

    weight = property(lambda self: jnp.moveaxis(self.kernel[...], (-1, -2), (0, 1)))
    """The kernel in PyTorch's layout, (out, in / groups, *kernel_size)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        """Convolves `x`, (N, in, *spatial) or (in, *spatial)."""
        x = jnp.moveaxis(x, -self.rank - 1, -1)
        if self.padding_mode != "zeros":
            mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[self.padding_mode]
            x = jnp.pad(x, [(0, 0)] * (x.ndim - self.rank - 1) + [*self.border, (0, 0)], mode)
        return jnp.moveaxis(super().__call__(x), -1, -self.rank - 1)


class ChannelsFirstConv(nnx.Conv):
    """`nnx.Conv` with PyTorch's axes, (N, C, *spatial) or (C, *spatial), and PyTorch's initial values."""

    def __init__(self, inputs: int, outputs: int, kernel: Sequence[int], **options: Any):
        self.channel_axis = -len(kernel) - 1
        fan_in = math.prod(kernel) * (inputs // options.get("feature_group_count", 1))
        super().__init__(inputs, outputs, kernel, **options, **uniform_init(fan_in))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Convolves `x`."""
        return jnp.moveaxis(super().__call__(jnp.moveaxis(x, self.channel_axis, -1)), -1, self.channel_axis)


class Conv1d(ConvNd):
    """PyTorch's `nn.Conv1d`: (N, in, L) or (in, L)."""

    rank = 1


class Conv2d(ConvNd):
    """PyTorch's `nn.Conv2d`: (N, in, H, W) or (in, H, W)."""

    rank = 2


class Conv3d(ConvNd):
    """PyTorch's `nn.Conv3d`: (N, in, D, H, W) or (in, D, H, W)."""

    rank = 3


class ConvTransposeNd(nnx.ConvTranspose):
    """`nnx.ConvTranspose` with PyTorch's constructor, axes `(N, C, *spatial)` at the border, and initialisation.

    The parameters are Flax's: `kernel` (*kernel_size, out / groups, in) and `bias` (out,).
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
        kernel, dilations = per_axis(kernel_size, self.rank), per_axis(dilation, self.rank)
        sizes = zip(kernel, dilations, per_axis(padding, self.rank), per_axis(output_padding, self.rank), strict=True)
        init = uniform_init(out_channels // groups * math.prod(kernel))
        super().__init__(
            in_channels,
            out_channels // groups,
            kernel,
            strides=per_axis(stride, self.rank),
            padding=tuple((d * (k - 1) - p, d * (k - 1) - p + extra) for k, d, p, extra in sizes),
            kernel_dilation=dilations,
            use_bias=bias,
            transpose_kernel=True,
            **init,
            rngs=rngs,
        )
        if groups > 1 and bias:
            self.bias = nnx.Param(init["bias_init"](rngs.params(), (out_channels,), jnp.float32))
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.out_features = out_channels
        self.stride, self.dilation = self.strides, dilations
        self.output_padding = per_axis(output_padding, self.rank)

    weight = property(lambda self: jnp.moveaxis(self.kernel[...], (-1, -2), (0, 1)))
    """The kernel in PyTorch's layout, (in, out / groups, *kernel_size)."""

    def __call__(self, x: jax.Array, output_size: Sequence[int] | None = None) -> jax.Array:
        """Applies the layer to `x`, (N, in, *spatial) or (in, *spatial).

        Args:
          x: the input.
          output_size: the spatial shape of the result (or its whole shape), in place of `output_padding`.
        """
        x = jnp.moveaxis(x, -self.rank - 1, -1)
        pads = self.padding
        if output_size is not None:
            sizes = zip(output_size[-self.rank :], x.shape[-self.rank - 1 : -1], self.kernel_size, strict=True)
            steps = zip(sizes, self.stride, self.dilation, strict=True)
            lengths = [size - 1 + d * (k - 1) - s * (n - 1) for (size, n, k), s, d in steps]
            pads = [(pair[0], both - pair[0]) for pair, both in zip(pads, lengths, strict=True)]
        dtype = jnp.result_type(x, self.kernel[...])
        batch, kernel = x.reshape(-1, *x.shape[-self.rank - 1 :]).astype(dtype), self.kernel[...].astype(dtype)
        options = {"padding": pads, "rhs_dilation": self.dilation, "transpose_kernel": True}
        if self.groups == 1:
            y = jax.lax.conv_transpose(batch, kernel, self.stride, **options)
        else:
            parts = zip(jnp.split(batch, self.groups, -1), jnp.split(kernel, self.groups, -1), strict=True)
            y = jnp.concatenate([jax.lax.conv_transpose(p, k, self.stride, **options) for p, k in parts], -1)
        if self.bias is not None:
            y += self.bias[...]
        return jnp.moveaxis(y.reshape(*x.shape[: -self.rank - 1], *y.shape[1:]), -1, -self.rank - 1)


class ChannelsFirstConvTranspose(nnx.ConvTranspose):
    """`nnx.ConvTranspose` with PyTorch's axes, (N, C, *spatial) or (C, *spatial), and PyTorch's initial values."""

    def __init__(self, inputs: int, outputs: int, kernel: Sequence[int], **options: Any):
        self.channel_axis = -len(kernel) - 1
        options |= uniform_init(math.prod(kernel) * outputs)
        super().__init__(inputs, outputs, kernel, transpose_kernel=True, **options)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Applies the layer to `x`."""
        return jnp.moveaxis(super().__call__(jnp.moveaxis(x, self.channel_axis, -1)), -1, self.channel_axis)


class ConvTranspose1d(ConvTransposeNd):
    """PyTorch's `nn.ConvTranspose1d`: (N, in, L) or (in, L)."""

    rank = 1


class ConvTranspose2d(ConvTransposeNd):
    """PyTorch's `nn.ConvTranspose2d`: (N, in, H, W) or (in, H, W)."""

    rank = 2


class ConvTranspose3d(ConvTransposeNd):
    """PyTorch's `nn.ConvTranspose3d`: (N, in, D, H, W) or (in, D, H, W)."""

    rank = 3
