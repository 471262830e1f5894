"""Convolutions, pooling, padding, resizing and folding layers (torch docs: torch.nn).

At a module's border axes are channels first. The ``channels_last`` forms are the standard nnx layers; the layout pass
takes them where it can move the axes at the calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from t2j_lsp.translate.rule.call import NO_LITERAL
from t2j_lsp.translate.rule.facts import Scalar
from t2j_lsp.translate.rule.layer import Border, Build, layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Argument, Call, channels_last

from ._arguments import use_bias
from ._windows import pools_all, shown, sizes_of, window_text

CONV = (
    "(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,"
    " padding_mode='zeros', device=None, dtype=None)"
)
TRANSPOSE = (
    "(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,"
    " padding_mode='zeros', device=None, dtype=None)"
)

NAMES = {"weight": "kernel", "in_channels": "in_features", "out_channels": "out_features"}
"""Flax's names of a convolution's attributes, whichever form the layer itself was given."""


def _size_texts(argument: Argument, rank: int) -> tuple[str, ...] | None:
    """One size for each spatial axis as text: of a literal, or of a name that surely holds an int."""
    sizes = sizes_of(argument, rank)
    if sizes is not None:
        return tuple(map(str, sizes))
    known_int = isinstance(argument.fact, Scalar) and argument.fact.kind == "int"
    return (argument.text,) * rank if known_int and argument.simple else None


def _tuple_text(sizes: tuple[str, ...]) -> str:
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def conv_channels_last(rank: int) -> Build:
    """nnx.Conv with its channels on the last axis, where every size is surely known to be an int or a literal tuple."""
    return _conv(rank, "nnx.Conv", lambda call, text: call.site.init(text))


def conv_channels_first(rank: int) -> Build:
    """A subclass of it that takes PyTorch's axes and has PyTorch's initial values."""
    return _conv(rank, "ChannelsFirstConv", lambda call, text: "")


def conv_short(rank: int) -> Build:
    """nnx.Conv by a function that has PyTorch's initial values."""
    return _conv(rank, "conv", lambda call, text: "")


def _conv(rank: int, head: str, init_text: Callable[[Call, str], str]) -> Build:

    def build(call: Call) -> Piece | None:
        if call.given("dtype") or call.given("padding_mode"):
            return None
        kernel, stride = _size_texts(call["kernel_size"], rank), _size_texts(call["stride"], rank)
        dilation, padding = _size_texts(call["dilation"], rank), call.literal("padding")
        pads = sizes_of(call["padding"], rank)
        pad_is_int = isinstance(call["padding"].fact, Scalar) and call["padding"].fact.kind == "int"
        if kernel is None or stride is None or dilation is None:
            return None
        text = f"{head}({{in_channels}}, {{out_channels}}, {_tuple_text(kernel)}"
        text += f", strides={_alike(stride)}" if set(stride) != {"1"} else ""
        if pads is not None:
            text += f", padding={_pad_pairs(pads)}"
        elif padding == "valid" or (padding == "same" and set(kernel) <= {"1", "3", "5", "7", "9", "11"}):
            text += f', padding="{padding.upper()}"'
        elif pad_is_int:
            text += ", padding={padding}"
        else:
            return None
        text += f", kernel_dilation={_alike(dilation)}" if set(dilation) != {"1"} else ""
        text += ", feature_group_count={groups?}"
        text += use_bias(call)
        init = (
            ", kernel_init=uniform_fan_in"
            if call.literal("bias") in (None, False)
            else f", **uniform_init({_fan_in(call, kernel)})"
        )
        text += init_text(call, init)
        return call.emit(text + ", rngs={rngs})", rngs=call.site.rngs())

    return build


def _alike(sizes: tuple[str, ...]) -> str:
    """Sizes as Flax takes them: one number stands for all axes."""
    return sizes[0] if len(set(sizes)) == 1 else _tuple_text(sizes)


def conv_transpose_channels_last(rank: int) -> Build:
    """nnx.ConvTranspose, the gradient of a convolution, where every size is a literal."""
    return _conv_transpose(rank, "nnx.ConvTranspose", _transpose_options)


def conv_transpose_channels_first(rank: int) -> Build:
    """A subclass of it that takes PyTorch's axes and has PyTorch's initial values."""
    return _conv_transpose(rank, "ChannelsFirstConvTranspose", lambda call, area: "")


def conv_transpose_short(rank: int) -> Build:
    """nnx.ConvTranspose by a function that has PyTorch's kernel and initial values."""
    return _conv_transpose(rank, "transposed_conv", lambda call, area: "")


def _conv_transpose(rank: int, head: str, options: Callable[[Call, int], str]) -> Build:
    """It is padded by what the kernel reaches over the border without PyTorch's padding, which crops."""

    def build(call: Call) -> Piece | None:
        names = ("kernel_size", "stride", "padding", "output_padding", "dilation")
        kernel, stride, padding, extra, dilation = (sizes_of(call[name], rank) for name in names)
        if call.given("dtype") or call.given("padding_mode") or call.literal("groups") != 1:
            return None
        if kernel is None or stride is None or padding is None or extra is None or dilation is None:
            return None
        reach = [d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True)]
        pairs = ", ".join(f"({one}, {one + more})" for one, more in zip(reach, extra, strict=True))
        alike = len(set(reach)) == 1 and not any(extra)
        text = f"{head}({{in_channels}}, {{out_channels}}, {shown(kernel)}"
        text += f", strides={stride[0] if len(set(stride)) == 1 else shown(stride)}" if set(stride) != {1} else ""
        text += f", padding={reach[0] if alike else f'({pairs},)' if rank == 1 else f'({pairs})'}"
        text += f", kernel_dilation={shown(dilation)}" if set(dilation) != {1} else ""
        text += use_bias(call)
        return call.emit(text + options(call, math.prod(kernel)) + ", rngs={rngs})", rngs=call.site.rngs())

    return build


def _transpose_options(call: Call, area: int) -> str:
    """The initial values of a transposed convolution whose kernel has so many places."""
    fan_in = f"{{out_channels}} * {area}" if area != 1 else "{out_channels}"
    if isinstance(channels := call.literal("out_channels"), int):
        fan_in = str(channels * area)
    no_bias = call.literal("bias") in (None, False)
    init = call.site.init(", kernel_init=uniform_fan_in" if no_bias else f", **uniform_init({fan_in})")
    return init + ", transpose_kernel=True"


def _fan_in(call: Call, kernel: tuple[str, ...]) -> str:
    """Inputs of each output: those of its group, at every place of the kernel."""
    area = math.prod(int(k) for k in kernel if k.isdecimal())
    names = [k for k in kernel if not k.isdecimal()]
    channels, groups = call.literal("in_channels"), call.literal("groups")
    if isinstance(channels, int) and isinstance(groups, int) and groups > 0:
        return " * ".join([str(channels // groups * area), *names])
    text = "{in_channels}" if groups == 1 else "{in_channels} // {groups}"
    return " * ".join([text, *([str(area)] if area != 1 else []), *names])


def _pad_pairs(pads: tuple[int, ...]) -> str:
    """Explicit padding on both sides: "SAME" pads a strided convolution by other amounts."""
    return str(pads[0]) if len(set(pads)) == 1 else "(" + ", ".join(f"({p}, {p})" for p in pads) + ")"


def pool_channels_last(rank: int, function: str) -> Build:
    """``nnx.max_pool`` or ``nnx.avg_pool``, where every size is surely an int and no window is added at the end.

    Of the layer it is a partial, of the function a call.
    """

    def build(call: Call) -> Piece | None:
        if pools_all(call, rank, batched=True):
            return whole(call)
        window = window_text(call["kernel_size"], rank)
        stride = window if call["stride"].is_none else window_text(call["stride"], rank)
        padding = sizes_of(call["padding"], rank)
        looked_at = ("input", "kernel_size", "stride", "padding")
        plain = all(not call.given(name) for name in call.arguments if name not in looked_at)
        if window is None or stride is None or padding is None or not plain:
            return None
        pads = f", padding={tuple((p, p) for p in padding)}" if any(padding) else ""
        if "input" in call.arguments:
            return call.emit(f"{function}({{input}}, {window}, strides={stride}{pads})")
        return call.emit(f"functools.partial({function}, window_shape={window}, strides={stride}{pads})")

    def whole(call: Call) -> Piece:
        if function == "nnx.avg_pool":
            return call.emit(f"jnp.mean({{input}}, axis={_spatial_axes(rank)}, keepdims=True)")
        return call.emit(f"{function}({{input}}, {{input}}.shape[1:-1])")

    return build


def pool_function(function: str) -> Callable[[Call], Piece | None]:
    """The function with its settings: such a layer holds nothing else. What is no literal has to be bound at once."""

    def build(call: Call) -> Piece | None:
        given = [p.name for p in call.signature.parameters or () if call.given(p.name)]
        settings = ", ".join(f"{one}={{{one}}}" for one in given)
        if any(call.literal(one) is NO_LITERAL for one in given):
            return call.emit(f"functools.partial({function}, {settings})")
        return call.emit(f"lambda x: {function}(x, {settings})")

    return build


def _spatial_axes(rank: int) -> str:
    """The axes of space in front of the channels."""
    return "-2" if rank == 1 else str(tuple(range(-rank - 1, -1)))


def _is_mean(call: Call, rank: int) -> bool:
    return call.literal("output_size") in (1, (1,) * rank, [1] * rank)


def mean_channels_last(rank: int) -> Build:
    """The mean over the spatial axes of channels-last values."""

    def build(call: Call) -> Piece | None:
        if not _is_mean(call, rank):
            return None
        head = "" if "input" in call.arguments else "lambda x: "
        return call.emit(head + f"jnp.mean({'x' if head else '{input}'}, axis={_spatial_axes(rank)}, keepdims=True)")

    return build


def mean_or_pool(rank: int) -> Build:
    """One value for each channel is a mean over the spatial axes."""

    def build(call: Call) -> Piece | None:
        if _is_mean(call, rank):
            axes = "-1" if rank == 1 else str(tuple(range(-rank, 0)))
            return call.emit(f"lambda x: jnp.mean(x, axis={axes}, keepdims=True)")
        return pool(call)

    pool = pool_function(f"adaptive_avg_pool{rank}d")
    return build


def _padded(mode: str) -> Callable[[int], Build]:
    """Padding in front of the channels, by literal sizes, the last axis of space first."""

    def form(spatial: int) -> Build:
        def build(call: Call) -> Piece | None:
            sizes = call.literal("padding")
            if isinstance(sizes, int):
                sizes = (sizes,) * 2 * spatial
            if not isinstance(sizes, tuple | list) or len(sizes) != 2 * spatial:
                return None
            value = ", value={value}" if "value" in call.arguments else ""
            return call.emit(f"lambda x: pad(x, {(0, 0, *sizes)}{mode}{value})")

        return build

    return form


for rank in (1, 2, 3):
    for kind in ("max", "avg"):
        channels_last(f"torch.nn.functional.{kind}_pool{rank}d", rank, pool_channels_last(rank, f"nnx.{kind}_pool"))
        trait(Trait.POOLS_TO_SIZE, f"torch.nn.Adaptive{kind.title()}Pool{rank}d")
        trait(Trait.POOLS_TO_SIZE, f"torch.nn.functional.adaptive_{kind}_pool{rank}d")
    channels_last(f"torch.nn.functional.adaptive_avg_pool{rank}d", rank, mean_channels_last(rank))
    layer(
        f"torch.nn.Conv{rank}d{CONV}",
        channels_last=conv_channels_last(rank),
        last_helper=f"torch_conv{rank}d",
        channels_first=conv_channels_first(rank),
        short=conv_short(rank),
        spatial=rank,
        flax="nnx.Conv",
        attributes=NAMES,
        held=("kernel_size",),
        switches={"bias": "use_bias"},
        settable={"stride": "strides", "padding": "padding", "dilation": "kernel_dilation"},
        jax="nnx.Conv(in_channels, out_channels, kernel_size, ..., rngs=rngs) between moveaxis",
    )
    layer(
        f"torch.nn.ConvTranspose{rank}d{TRANSPOSE}",
        channels_last=conv_transpose_channels_last(rank),
        channels_first=conv_transpose_channels_first(rank),
        short=conv_transpose_short(rank),
        spatial=rank,
        flax="nnx.ConvTranspose",
        attributes=NAMES,
        held=("kernel_size",),
        switches={"bias": "use_bias"},
        unheld=("padding",),
    )
    layer(
        f"torch.nn.MaxPool{rank}d(kernel_size, stride=None, padding=0, dilation=1, return_indices=False,"
        " ceil_mode=False)",
        pool_function(f"max_pool{rank}d"),
        function=True,
        channels_last=pool_channels_last(rank, "nnx.max_pool"),
        settable={name: name for name in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")},
        spatial=rank,
        random=False,
    )
    layer(
        f"torch.nn.AvgPool{rank}d(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"
        + (", divisor_override=None)" if rank > 1 else ")"),
        pool_function(f"avg_pool{rank}d"),
        function=True,
        channels_last=pool_channels_last(rank, "nnx.avg_pool"),
        settable={name: name for name in ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")},
        spatial=rank,
        random=False,
    )
    layer(
        f"torch.nn.AdaptiveAvgPool{rank}d(output_size)",
        mean_or_pool(rank),
        function=True,
        channels_last=mean_channels_last(rank),
        spatial=rank,
        random=False,
    )
    layer(f"torch.nn.AdaptiveMaxPool{rank}d(output_size, return_indices=False)", random=False)
    layer(f"torch.nn.LPPool{rank}d(norm_type, kernel_size, stride=None, ceil_mode=False)", random=False)
    layer(f"torch.nn.MaxUnpool{rank}d(kernel_size, stride=None, padding=0)", random=False)
    for kind, mode in (("Zero", ""), ("Reflection", "reflect"), ("Replication", "replicate"), ("Circular", "circular")):
        padded = Border(takes_last=True, gives_last=True, form=_padded(f', mode="{mode}"' if mode else ""))
        layer(f"torch.nn.{kind}Pad{rank}d(padding)", random=False, border=padded)
    padded = Border(takes_last=True, gives_last=True, form=_padded(""))
    layer(f"torch.nn.ConstantPad{rank}d(padding, value)", random=False, border=padded)

for rank in (2, 3):
    layer(
        f"torch.nn.FractionalMaxPool{rank}d(kernel_size, output_size=None, output_ratio=None, return_indices=False,"
        " _random_samples=None)"
    )


def _repeat_last(spatial: int) -> Callable[[Call], Piece | None]:
    """Nearest neighbours at a whole factor are repeated values."""

    def build(call: Call) -> Piece | None:
        factor = call.literal("scale_factor")
        given = [name for name in ("size", "mode", "align_corners", "recompute_scale_factor") if call.given(name)]
        if given not in ([], ["mode"]) or call.literal("mode") != "nearest" or type(factor) is not int or factor < 1:
            return None
        return call.emit("lambda x: x" + "".join(f".repeat({factor}, axis={-1 - a})" for a in range(spatial, 0, -1)))

    return build


def _upsampled(spatial: int) -> Build:
    """Nearest neighbours are repeated; the rest is interpolated."""

    def build(call: Call) -> Piece | None:
        repeated = _repeat_last(spatial)(call)
        if repeated is not None:
            return repeated
        given = [name for name in call.arguments if call.given(name)]
        if any(call.literal(name) is NO_LITERAL for name in given):
            return None
        settings = "".join(f", {name}={{{name}}}" for name in given)
        return call.emit(f"lambda x: interpolate(x{settings}, channels_last=True)")

    return build


layer(
    "torch.nn.Upsample(size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None)",
    random=False,
    border=Border(takes_last=True, gives_last=True, form=_upsampled),
)
layer("torch.nn.UpsamplingNearest2d(size=None, scale_factor=None)", random=False)
layer("torch.nn.UpsamplingBilinear2d(size=None, scale_factor=None)", random=False)
layer("torch.nn.PixelShuffle(upscale_factor)", random=False)
layer("torch.nn.PixelUnshuffle(downscale_factor)", random=False)
layer("torch.nn.ChannelShuffle(groups)", random=False)
layer("torch.nn.Unfold(kernel_size, dilation=1, padding=0, stride=1)", random=False)
layer("torch.nn.Fold(output_size, kernel_size, dilation=1, padding=0, stride=1)", random=False)
