"""Resizing, padding and rearranging of images: ``F.interpolate``, ``F.pad``, ``F.grid_sample``, ``F.pixel_shuffle``."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import sized_by
from t2j_lsp.translate.rule.record import NO_LITERAL, Call, Piece, Row, channels_last, rule

from ._facts import first, same

F = "torch.nn.functional"

SIZES = "{input}, size={size?}, scale_factor={scale_factor?}, mode={mode?}, align_corners={align_corners?}"
Row(
    f"{F}.interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None,"
    " recompute_scale_factor=None, antialias=False)",
    f"interpolate({SIZES}, recompute_scale_factor={{recompute_scale_factor?}}, antialias={{antialias?}})",
    result=same,
)
Row(
    f"{F}.upsample(input, size=None, scale_factor=None, mode='nearest', align_corners=None)",
    f"interpolate({SIZES})",
    result=same,
)
Row(
    f"{F}.upsample_nearest(input, size=None, scale_factor=None)",
    "interpolate({input}, size={size?}, scale_factor={scale_factor?})",
    result=same,
)
Row(
    f"{F}.upsample_bilinear(input, size=None, scale_factor=None)",
    'interpolate({input}, size={size?}, scale_factor={scale_factor?}, mode="bilinear", align_corners=True)',
    result=same,
)


def _interpolated(call: Call) -> Piece | None:
    """Of channels-last values; a whole factor repeats its nearest neighbours."""
    options = "".join(f", {name}={{{name}?}}" for name in call.arguments if name != "input")
    return call.emit("interpolate({input}" + options + ", channels_last=True)")


channels_last(f"{F}.interpolate", 0, _interpolated)


sized_by("pad", of=f"{F}.pad")


@rule(f"{F}.pad(input, pad, mode='constant', value=None)", jax="pad(x, pad, mode, value)", result=same)
def pad(call: Call) -> Piece:
    """PyTorch's pairs start from the last axis. jnp.pad wants one for every axis, so the rank must be known."""
    pairs = _pairs(call)
    if pairs is None or call.literal("mode") != "constant":
        return call.emit("pad({input}, {pad}, mode={mode?}, value={value?})")
    widths = "(" + ", ".join(f"({before}, {after})" for before, after in pairs) + ("," if len(pairs) == 1 else "") + ")"
    zero = call["value"].is_none or call.literal("value") == 0
    return call.emit(f"jnp.pad({{input}}, {widths}" + (")" if zero else ", constant_values={value})"))


def _padded(call: Call) -> Piece | None:
    """Channels-last values are padded in front of their channels."""
    node, widths = call["pad"].node, call["pad"].text
    if not isinstance(node, ast.List | ast.Tuple) or len(node.elts) % 2 or not node.elts:
        return None
    if any(isinstance(one, ast.Starred) for one in node.elts):
        return None
    return call.emit(f"pad({{input}}, {widths[0]}0, 0, {widths[1:]}, mode={{mode?}}, value={{value?}})")


channels_last(f"{F}.pad", 0, _padded)


def _pairs(call: Call) -> list[tuple[int, int]] | None:
    """The padding of each axis, first axis first; None if it isn't known or crops."""
    fact, widths = first(call).fact, call.literal("pad")
    if (
        not isinstance(fact, Tensor)
        or fact.rank is None
        or widths is NO_LITERAL
        or not isinstance(widths, tuple | list)
    ):
        return None
    if len(widths) % 2 or any(not isinstance(width, int) or width < 0 for width in widths):
        return None
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    return [(0, 0)] * (fact.rank - len(pairs)) + pairs


Row("torch.constant_pad_nd(input, pad, value=0)", "pad({input}, {pad}, value={value?})", result=same)

Row(
    f"{F}.grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None)",
    "grid_sample({input}, {grid}, mode={mode?}, padding_mode={padding_mode?}, align_corners={align_corners?})",
    result=same,
)
Row(
    f"{F}.affine_grid(theta, size, align_corners=None)",
    "affine_grid({theta}, {size}, align_corners={align_corners?})",
    result=lambda call: Tensor(dtype="float"),
)

for name, factor in {"pixel_shuffle": "upscale_factor", "pixel_unshuffle": "downscale_factor"}.items():
    Row(f"{F}.{name}(input, {factor})", f"{name}({{input}}, {{{factor}}})", aliases=[f"torch.{name}"], result=same)
Row(
    f"{F}.channel_shuffle(input, groups)",
    "channel_shuffle({input}, {groups})",
    aliases=["torch.channel_shuffle", f"{F}.native_channel_shuffle", "torch.native_channel_shuffle"],
    result=same,
)
