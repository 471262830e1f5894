"""The layers of ``einops.layers.torch``: einops itself takes JAX arrays, its layers don't.

They have no parameters, so a ``functools.partial`` of the einops function is the layer (einops docs, Layers).
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, refuse, rule


def _layer(call: Call) -> Fact:
    return Layer(call.signature.name)


@rule(
    "einops.layers.torch.Rearrange(pattern, **axes_lengths)",
    jax="functools.partial(einops.rearrange, pattern=pattern, **axes_lengths)",
    result=_layer,
    example="einops.layers.torch.Rearrange('b c h w -> b (h w) c', h=2)",
)
def rearrange(call: Call) -> Piece:
    return _with_lengths(call, call.emit("functools.partial(einops.rearrange, pattern={pattern})"))


@rule(
    "einops.layers.torch.Reduce(pattern, reduction, **axes_lengths)",
    jax="functools.partial(einops.reduce, pattern=pattern, reduction=reduction, **axes_lengths)",
    result=_layer,
    example="einops.layers.torch.Reduce('b c h w -> b c', 'mean')",
)
def reduce(call: Call) -> Piece:
    return _with_lengths(call, call.emit("functools.partial(einops.reduce, pattern={pattern}, reduction={reduction})"))


def _with_lengths(call: Call, partial: Piece) -> Piece:
    """The partial with the lengths of axes as further keywords."""
    lengths = [f"{item.name}={item.text}" if item.name else f"**{item.text}" for item in call["axes_lengths"].items]
    return Piece(", ".join([partial.text.removesuffix(")"), *lengths]) + ")")


refuse(
    "einops.layers.torch.EinMix",
    "EinMix has weights, and einops has no such layer for NNX: write an nnx.Param and jnp.einsum.",
)
