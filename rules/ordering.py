"""Extremes, sorting and order statistics: ``torch.max``, ``torch.sort``, ``torch.topk``, ``torch.median``, ...

Where PyTorch returns (values, indices), a helper returns the same named tuple, so that unpacking, ``[0]`` and
``.values`` go on working; the values' gradient goes to one of several equal elements, as in PyTorch.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Fact, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.library import numbered_by
from t2j_lsp.translate.rule.pieces import Part
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, rule

from ._arguments import rank_of
from ._axes import spelled
from ._facts import broadcast, first, is_float, is_integer, reduced, reduced_int, reduced_pair, same, same_pair

numbered_by("minlength", "bins")
numbered_by("k", of=("torch.Tensor.topk", "torch.kthvalue", "torch.Tensor.kthvalue"))

DYNAMIC_SIZE = "The size of the result depends on the values: under jax.jit give {} a size=."


def _extreme_fact(call: Call) -> Fact:
    if "other" in call.arguments:
        return broadcast(call)
    if "dim" not in call.arguments:
        return reduced(call)
    return broadcast(call) if _second_is_tensor(call) else reduced_pair(call)


def _second_is_tensor(call: Call) -> bool | None:
    """Whether ``y`` of ``torch.max(x, y)`` is a tensor (element by element) or a dim; None if nothing tells."""
    argument = call["dim"]
    if call.given("keepdim") or isinstance(argument.fact, Scalar):
        return False
    plain = argument.node is not None and not any(isinstance(n, ast.Call) for n in ast.walk(argument.node))
    tells = plain and ("axis" in argument.text or "dim" in argument.text)
    if isinstance(argument.fact, Tensor) and (argument.fact.sure or not tells):
        return True
    if tells:
        return False
    return False if call.site.unpacked == 2 else None


def used_part(call: Call) -> str | None:
    """Which of (values, indices) is the only one used: ``x.max(1)[1]``, ``x.max(1).values``, ``_, i = x.max(1)``."""
    return {0: "values", 1: "indices", "values": "values", "indices": "indices"}.get(call.site.index)


def as_part(piece: Piece) -> Part:
    return Part(piece.text, piece.precedence)


def _extreme(name: str) -> None:
    def emit(call: Call) -> Piece | Refusal:
        if "other" in call.arguments:
            return call.emit(f"jnp.{name}imum({{input}}, {{other}})")
        if "dim" not in call.arguments:
            return spelled(call, name, "")
        elementwise = _second_is_tensor(call)
        if elementwise is None:
            return call.refuse(f"can't tell whether {call['dim'].text} is a dim or a tensor")
        if elementwise:
            return call.emit(f"jnp.{name}imum({{input}}, {{dim}})")
        arguments = "axis={dim}, keepdims={keepdim?}"
        part = used_part(call)
        if part == "indices":
            return as_part(spelled(call, f"arg{name}", arguments))
        # Without gradients ties don't matter.
        if part == "values" and (call.site.without_gradient or is_integer(first(call).fact)):
            return as_part(spelled(call, name, arguments))
        return call.emit(f"{name}_with_indices({{input}}, {arguments})")

    rule(
        f"torch.{name}(input)",
        f"torch.{name}(input, dim, keepdim=False)",
        f"torch.{name}(input, other)",
        jax=f"jnp.{name}(x) | {name}_with_indices(x, axis) | jnp.{name}imum(x, y)",
        method=True,
        result=_extreme_fact,
    )(emit)


_extreme("max")
_extreme("min")


@rule(
    "torch.aminmax(input, *, dim=None, keepdim=False)",
    jax="(jnp.min(x, axis), jnp.max(x, axis))",
    method=True,
    result=lambda call: Tuple((reduced(call), reduced(call)), fields=("min", "max")),
)
def aminmax(call: Call) -> Piece:
    arguments = "({input}, axis={dim?}, keepdims={keepdim?})"
    name = {0: "min", 1: "max", "min": "min", "max": "max"}.get(call.site.index)
    if name is not None:
        return as_part(call.emit(f"jnp.{name}{arguments}"))
    return Piece(call.emit(f"(jnp.min{arguments}, jnp.max{arguments})").text)


for name in ("argmax", "argmin"):

    def arg(call: Call, name: str = name) -> Piece:
        return spelled(call, name, "axis={dim?}, keepdims={keepdim?}")

    rule(
        f"torch.{name}(input, dim=None, keepdim=False)",
        jax=f"jnp.{name}(x, axis)",
        method=True,
        result=reduced_int,
    )(arg)


# Sorting --------------------------------------------------------------------------------------------------------


@rule(
    "torch.sort(input, dim=-1, descending=False, *, stable=False)",
    jax="sort_with_indices(x, axis)",
    method=True,
    ignore=["stable"],
    result=same_pair,
)
def sort(call: Call) -> Piece:
    """JAX's sorts are stable, which PyTorch's may be."""
    arguments = "({input}, axis={dim?}, descending={descending?})"
    part = used_part(call)
    if part is None:
        return call.emit(f"sort_with_indices{arguments}")
    return as_part(call.emit(f"jnp.sort{arguments}" if part == "values" else f"jnp.argsort{arguments}"))


Row("torch.msort(input)", "jnp.sort({input}, axis=0)", method=True, result=same)


@rule(
    "torch.argsort(input, dim=-1, descending=False, *, stable=False)",
    jax="jnp.argsort(x, axis)",
    method=True,
    ignore=["stable"],
    result=lambda call: Tensor(getattr(same(call), "rank", None), "int"),
)
def argsort(call: Call) -> Piece:
    """JAX's sorts are stable, which PyTorch's may be."""
    return call.emit("jnp.argsort({input}, axis={dim?}, descending={descending?})")


@rule(
    "torch.topk(input, k, dim=-1, largest=True, sorted=True)",
    jax="jax.lax.top_k(x, k)",
    method=True,
    ignore=["sorted"],
    result=same_pair,
)
def topk(call: Call) -> Piece:
    """jax.lax.top_k returns a list, which has no `.values`: the helper stands where the value is kept whole."""
    part = used_part(call)
    counted_in_int32 = call.site.x64 and part != "values"
    if not call.given("largest") and not counted_in_int32 and (call.site.unpacked == 2 or part is not None):
        pair = call.emit("jax.lax.top_k({input}, {k}, axis={dim?})")
        return pair if part is None else as_part(Piece(f"{pair.text}[{0 if part == 'values' else 1}]"))
    return call.emit("top_k({input}, {k}, axis={dim?}, largest={largest?})")


Row(
    "torch.kthvalue(input, k, dim=-1, keepdim=False)",
    "kth_value({input}, {k}, axis={dim?}, keepdims={keepdim?})",
    method=True,
    result=reduced_pair,
)
Row(
    "torch.mode(input, dim=-1, keepdim=False)",
    "mode_with_indices({input}, axis={dim?}, keepdims={keepdim?})",
    method=True,
    result=reduced_pair,
)


# Order statistics -----------------------------------------------------------------------------------------------


def _median(name: str) -> None:
    def emit(call: Call) -> Piece:
        if "dim" not in call.arguments:
            return call.emit(f"lower_{name}({{input}})")
        return call.emit(f"{name}_with_indices({{input}}, axis={{dim}}, keepdims={{keepdim?}})")

    rule(
        f"torch.{name}(input)",
        f"torch.{name}(input, dim, keepdim=False)",
        jax=f"lower_{name}(x) | {name}_with_indices(x, axis)",
        method=True,
        fidelity=CLOSE,
        result=lambda call: reduced_pair(call) if "dim" in call.arguments else reduced(call),
    )(emit)


_median("median")
_median("nanmedian")

for name in ("quantile", "nanquantile"):

    def quantile(call: Call, name: str = name) -> Piece:
        """A 0-d tensor has no axis to name or to keep."""
        axes = "" if rank_of(call["input"]) == 0 else ", axis={dim?}, keepdims={keepdim?}"
        _ = call["dim"], call["keepdim"]
        return call.emit(f"jnp.{name}({{input}}, {{q}}{axes}, method={{interpolation?}})")

    rule(
        f"torch.{name}(input, q, dim=None, keepdim=False, *, interpolation='linear')",
        jax=f"jnp.{name}(x, q, axis)",
        method=True,
    )(quantile)


# Counting -------------------------------------------------------------------------------------------------------


@rule(
    "torch.unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None)",
    jax="jnp.unique(x)",
    method=True,
    ignore=["sorted"],
    fidelity=CLOSE,
    note=DYNAMIC_SIZE.format("jnp.unique"),
    result=lambda call: Tensor() if not _asks(call) else Tuple((Tensor(),) * (1 + _asks(call))),
)
def unique(call: Call) -> Piece:
    arguments = "return_inverse={return_inverse?}, return_counts={return_counts?}, axis={dim?}"
    return call.emit(f"jnp.unique({{input}}, {arguments})")


def _asks(call: Call) -> int:
    return sum(call.literal(name) is not False for name in ("return_inverse", "return_counts"))


Row(
    "torch.unique_consecutive(input, return_inverse=False, return_counts=False, dim=None)",
    "unique_consecutive({input}, return_inverse={return_inverse?}, return_counts={return_counts?}, axis={dim?})",
    method=True,
    fidelity=CLOSE,
    note="The size of the result depends on the values: it can't be compiled by jax.jit.",
    result=lambda call: Tensor() if not _asks(call) else Tuple((Tensor(),) * (1 + _asks(call))),
)


@rule(
    "torch.bincount(input, weights=None, minlength=0)",
    jax="jnp.bincount(x, weights, minlength)",
    method=True,
    fidelity=CLOSE,
    note="Under jax.jit the size can't depend on the values: in modules the minlength is the length=, beyond which "
    "nothing is counted; where there is none, give one.",
    result=lambda call: Tensor(1),
)
def bincount(call: Call) -> Piece:
    """PyTorch adds integer weights up as floats, and makes room for values beyond ``minlength``."""
    weights = "{weights} * 1.0" if call.given("weights") and not is_float(call["weights"].fact) else "{weights?}"
    size = "length={minlength}" if call.site.in_module and call.given("minlength") else "minlength={minlength?}"
    return call.emit(f"jnp.bincount({{input}}, weights={weights}, {size})")


NOTHING_TO_COUNT = "JAX raises on an empty array if no range is given; PyTorch counts nothing."


@rule(
    "torch.histc(input, bins=100, min=0, max=0)",
    jax="jnp.histogram(x, bins, (min, max))[0]",
    method=True,
    fidelity=CLOSE,
    note=NOTHING_TO_COUNT,
)
def histc(call: Call) -> Piece:
    limits = ", range=({min}, {max})" if call.given("min") or call.given("max") else ""
    return call.emit(f"jnp.histogram({{input}}, bins={{bins}}{limits})[0]")


@rule(
    "torch.histogram(input, bins, *, range=None, weight=None, density=False)",
    jax="jnp.histogram(x, bins)",
    method=True,
    result=lambda _: Tuple((Tensor(1), Tensor(1)), fields=("hist", "bin_edges")),
    fidelity=CLOSE,
    note=NOTHING_TO_COUNT,
)
def histogram(call: Call) -> Piece:
    counted = "jnp.histogram({input}, {bins}, range={range?}, weights={weight?}, density={density?})"
    place = {"hist": 0, "bin_edges": 1}.get(str(call.site.index))
    return call.emit(counted) if place is None else as_part(call.emit(f"{counted}[{place}]"))
