"""Axes: their order and direction, and axes of size 1 (``permute``, ``flip``, ``unsqueeze``, ...)."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Fact, Tensor
from t2j_lsp.translate.rule.library import numbered_by
from t2j_lsp.translate.rule.record import Call, Piece, Row, rule

from ._arguments import axis_index, dtype_of, integer, is_sequence, rank_of, spread, width_of

numbered_by("k", of=("torch.rot90", "torch.Tensor.rot90"))

Row("torch.permute(input, dims)", "jnp.transpose({input}, {dims})", aliases=["torch.permute_copy"], result="same")
for name, axes in {"transpose": "dim0, dim1", "swapaxes": "axis0, axis1", "swapdims": "dim0, dim1"}.items():
    one, other = axes.split(", ")

    copies = ["torch.transpose_copy"] if name == "transpose" else []

    @rule(f"torch.{name}(input, {axes})", jax="jnp.swapaxes(x, i, j)", method=True, aliases=copies, result="same")
    def swap(call: Call, one: str = one, other: str = other) -> Piece:
        """A tensor without axes is its own transpose in PyTorch; JAX raises."""
        pair = f"{{{one}}}, {{{other}}}"
        template = f"{{input}}.swapaxes({pair})" if call.method else f"jnp.swapaxes({{input}}, {pair})"
        piece = call.emit(template)
        return call["input"].piece if rank_of(call["input"]) == 0 else piece


Row(
    "torch.movedim(input, source, destination)",
    "jnp.moveaxis({input}, {source}, {destination})",
    method=True,
    aliases=["torch.moveaxis", "torch.Tensor.moveaxis"],
    result="same",
)
Row("torch.t(input)", "{input}.T", method=True, aliases=["torch.t_copy"], result="same")
Row("torch.adjoint(input)", "{input}.conj().mT", method=True, result="same")


_TWO_TURNED = [1, 0], [-1, 0], [1, -2], [-1, -2]


@rule("torch.Tensor.permute(self, *dims)", jax="x.transpose(dims)", result="same")
def permute(call: Call) -> Piece:
    """``x.transpose(1, 0)`` would mean the same in PyTorch, which has no ``.transpose((i, j))``."""
    items = call["dims"].items
    axes = items[0].literal if len(items) == 1 else [axis.literal for axis in items]
    if isinstance(axes, list | tuple) and [*axes] in _TWO_TURNED:
        return call.emit("{self}.T")
    return call.emit(f"{{self}}.transpose({'({dims})' if len(items) == 2 else '{dims}'})", dims=spread(call["dims"]))


Row("torch.Tensor.T", "{self}.T")
Row("torch.Tensor.mT", "{self}.mT")
Row("torch.Tensor.H", "{self}.conj().T")
Row("torch.Tensor.mH", "{self}.conj().mT")


@rule("torch.Tensor.flip(self, *dims)", jax="jnp.flip(x, axis)", result="same")
def flip_method(call: Call) -> Piece:
    return call.emit("jnp.flip({self}, axis={dims:shape})")


@rule("torch.flip(input, dims)", jax="jnp.flip(x, axis)", result="same")
def flip(call: Call) -> Piece:
    return call.emit("jnp.flip({input}, axis={axes})", axes=call.axes("dims"))


Row("torch.fliplr(input)", "jnp.fliplr({input})", method=True, result="same")
Row("torch.flipud(input)", "jnp.flipud({input})", method=True, result="same")


@rule("torch.rot90(input, k=1, dims=(0, 1))", jax="jnp.rot90(x, k, axes)", method=True, result="same")
def rot90(call: Call) -> Piece:
    """JAX's axes must be a tuple."""
    axes = call.axes("dims") if call.given("dims") else None
    return call.emit("jnp.rot90({input}, k={k?}, axes={axes?})", axes=axes)


Row("torch.roll(input, shifts, dims=None)", "jnp.roll({input}, {shifts}, axis={dims?})", method=True, result="same")


# Axes of size 1 -------------------------------------------------------------------------------------------------


def _unsqueezed(call: Call) -> Fact:
    rank = rank_of(call["input"])
    return Tensor(None if rank is None else rank + 1, dtype_of(call["input"]))


@rule(
    "torch.unsqueeze(input, dim)",
    jax="jnp.expand_dims(x, dim)",
    method=True,
    aliases=["torch.unsqueeze_copy"],
    result=_unsqueezed,
)
def unsqueeze(call: Call) -> Piece:
    dim = integer(call["dim"])
    if dim is not None and -2 <= dim <= 2:
        return call.emit("{input}[{index}]", index=axis_index(dim, "None"))
    return call.emit("jnp.expand_dims({input}, {dim})")


def _squeezed(call: Call) -> Fact:
    return Tensor(None, dtype_of(call["input"]))


def _is_one(call: Call) -> bool:
    """Whether the axis that is squeezed is surely of size 1.

    The last one of what a layer of one feature gives; that of what is gathered by an index that has just got it.
    """
    width = width_of(call, "input") if "dim" in call.arguments else None
    return isinstance(width, ast.Constant) and width.value == 1 or _is_gathered_by_one(call)


def _is_gathered_by_one(call: Call) -> bool:
    """Whether it is ``x.gather(1, i.unsqueeze(1)).squeeze(1)``, or with ``i[:, None]``: that has the index's shape."""
    match call["input"].node:
        case ast.Call(func=ast.Attribute(attr="gather"), args=[*_, index], keywords=[]) as gathers:
            method = len(gathers.args) == 2 and isinstance(call.site.fact(index), Tensor)
            return method and integer(call["dim"]) is not None and _new_axis(index) == integer(call["dim"])
    return False


def _new_axis(node: ast.expr) -> int | None:
    """The axis of size 1 that an index is given; None if none can be told."""
    match node:
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[ast.Constant(value=int() as dim)], keywords=[]):
            return dim
        case ast.Call(
            func=ast.Attribute(attr="unsqueeze"),
            args=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as dim))],
            keywords=[],
        ):
            return -dim
        case ast.Subscript(slice=ast.Tuple(elts=[*before, ast.Constant(value=None)])):
            plain = all(ast.unparse(one) == ":" for one in before)
            return len(before) if plain else None
    return None


@rule(
    "torch.squeeze(input)",
    "torch.squeeze(input, dim)",
    jax="x.squeeze() | squeeze(x, axis)",
    method=True,
    aliases=["torch.squeeze_copy"],
    result=_squeezed,
)
def squeeze(call: Call) -> Piece:
    """PyTorch leaves axes alone whose size is not 1, where JAX raises."""
    if "dim" not in call.arguments:
        return call.emit("{input}.squeeze()")
    text = "{input}.squeeze(axis={axes})" if _is_one(call) else "squeeze({input}, axis={axes})"
    return call.emit(text, axes=call.axes("dim"))


for count in (1, 2, 3):

    @rule(f"torch.atleast_{count}d(*tensors)", jax=f"jnp.atleast_{count}d(x)")
    def atleast(call: Call, count: int = count) -> Piece:
        lists = any(map(is_sequence, call["tensors"].items))
        return call.emit(f"jnp.atleast_{count}d({{tensors}})", tensors=spread(call["tensors"], lists=lists))
