"""Broadcasting and repeating: ``expand``, ``repeat``, ``tile``, ... PyTorch's ``repeat`` is NumPy's ``tile``."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import TENSOR, Fact, ListOf, Scalar, Shape, Tensor, Tuple
from t2j_lsp.translate.rule.record import Argument, Call, Piece, Row, rule

from ._arguments import dtype_of, holder, part_texts, parts, rank_of, size_rank, spread
from ._facts import as_other, first


def _sized(call: Call) -> Fact:
    return Tensor(size_rank(call["size"]), dtype_of(first(call)))


def _broadcast(call: Call, name: str) -> Piece:
    """``jnp.broadcast_to`` where each -1 becomes the size it keeps, counted from the last axis."""
    items = call["size"].items or (call["size"],)
    nodes = parts(items[0]) if len(items) == 1 else [item.node for item in items]
    keeps = [node is not None and ast.unparse(node) == "-1" for node in nodes or ()]
    starred = any(isinstance(item.node, ast.Starred) for item in items)
    if any(keeps) and starred or any(_may_keep(item, len(items) == 1) for item in items):
        return call.emit(f"expand({{{name}}}, {{size:shape}})")
    if not any(keeps):
        return call.emit(f"jnp.broadcast_to({{{name}}}, {{size:shape}})")
    texts = part_texts(items[0]) if len(items) == 1 else [item.text for item in items]
    offset = 0 if rank_of(call[name]) == len(keeps) else len(keeps)
    tail = next(i for i in range(len(keeps) + 1) if all(keeps[i:]))
    shape = "{holder}.shape" if call[name].simple else f"{{{name}}}.shape"
    sizes = [f"{shape}[{i - offset}]" if keeps[i] else f"{{size{i}}}" for i in range(tail)]
    if tail == len(keeps) - 1:
        sizes.append(f"{shape}[-1]")
    elif tail < len(keeps):
        sizes.append(f"*{shape}[{tail - offset}:]")
    comma = "," if len(sizes) == 1 else ""
    holes = {f"size{i}": text for i, text in enumerate(texts)} | {"holder": holder(call[name])}
    return call.emit(f"jnp.broadcast_to({{{name}}}, ({', '.join(sizes)}{comma}))", **holes)


def _may_keep(size: Argument, alone: bool) -> bool:
    """Whether sizes that are not written out one by one may have a -1 among them: ``*sizes``, ``(-1,) * n + (4,)``."""
    node = size.node
    if node is None or isinstance(node, ast.Starred):
        return node is not None and not _is_shape(node)
    return alone and not isinstance(size.fact, Shape | Scalar) and parts(size) is None and not _is_shape(node)


def _is_shape(node: ast.expr) -> bool:
    """Whether an expression is surely a shape, or made of shapes and numbers other than -1."""
    match node:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size" | "Size")):
            return True
        case ast.Starred(value=inner) | ast.Subscript(value=inner, slice=ast.Slice()):
            return _is_shape(inner)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _is_shape(left) and _is_shape(right)
        case ast.BinOp(op=ast.Mult(), left=ast.Tuple() | ast.List() as left):
            return _is_shape(left)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(_is_shape(i) if isinstance(i, ast.Starred) else ast.unparse(i) != "-1" for i in items)
        case _:
            return False


@rule("torch.Tensor.expand(self, *size)", jax="jnp.broadcast_to(x, size)", result=_sized)
def expand(call: Call) -> Piece:
    return _broadcast(call, "self")


@rule(
    "torch.broadcast_to(input, size)",
    jax="jnp.broadcast_to(x, size)",
    method=True,
    aliases=["torch.expand_copy"],
    result=_sized,
)
def broadcast_to(call: Call) -> Piece:
    return _broadcast(call, "input")


Row("torch.Tensor.sum_to_size(self, *size)", "sum_to_size({self}, {size:shape})", result=_sized)
Row("torch.Tensor.expand_as(self, other)", "jnp.broadcast_to({self}, {other}.shape)", result=as_other)


def _as_broadcast(call: Call) -> Fact:
    """Each of the tensors, in the shape of the largest; a bool mask stays one."""
    items = call["tensors"].items
    if not items or any(item.text.startswith("*") for item in items):
        return ListOf(TENSOR)
    ranks = [rank_of(item) for item in items]
    rank = None if None in ranks else max(r for r in ranks if r is not None)
    return Tuple(tuple(Tensor(rank, dtype_of(item)) for item in items))


@rule("torch.broadcast_tensors(*tensors)", jax="jnp.broadcast_arrays(*xs)", result=_as_broadcast)
def broadcast_tensors(call: Call) -> Piece:
    return call.emit("jnp.broadcast_arrays({tensors})", tensors=spread(call["tensors"]))


@rule("torch.broadcast_shapes(*shapes)", jax="jnp.broadcast_shapes(*shapes)", result="shape")
def broadcast_shapes(call: Call) -> Piece:
    return call.emit("jnp.broadcast_shapes({shapes})", shapes=spread(call["shapes"]))


# Repeating ------------------------------------------------------------------------------------------------------


def _repeated(call: Call) -> Fact:
    return Tensor(size_rank(call["repeats"]), dtype_of(call["self"]))


@rule("torch.Tensor.repeat(self, *repeats)", jax="jnp.tile(x, repeats)", result=_repeated)
def repeat(call: Call) -> Piece:
    return call.emit("jnp.tile({self}, {repeats:shape})")


@rule("torch.Tensor.tile(self, *dims)", jax="jnp.tile(x, dims)")
def tile_method(call: Call) -> Piece:
    return call.emit("jnp.tile({self}, {dims:shape})")


Row("torch.tile(input, dims)", "jnp.tile({input}, {dims})")


def _repeats(call: Call) -> Fact:
    if "dim" not in call.arguments or not call.given("dim"):
        return Tensor(1, dtype_of(first(call)))
    return Tensor(rank_of(first(call)), dtype_of(first(call)))


@rule(
    "torch.repeat_interleave(input, repeats, dim=None, *, output_size=None)",
    "torch.repeat_interleave(repeats, *, output_size=None)",
    jax="jnp.repeat(x, repeats, axis)",
    method=True,
    result=_repeats,
)
def repeat_interleave(call: Call) -> Piece:
    if isinstance(call["repeats"].fact, Tensor) and not call.given("output_size"):
        call.note("The size of the result depends on the values: under jax.jit give jnp.repeat a total_repeat_length=.")
    if "input" not in call.arguments:
        template = "jnp.repeat(jnp.arange({repeats}.shape[0]), {repeats}, total_repeat_length={output_size?})"
        return call.emit(template)
    return call.emit("jnp.repeat({input}, {repeats}, axis={dim?}, total_repeat_length={output_size?})")
