"""Joining and splitting arrays: ``cat``, ``stack``, ``split``, ``chunk``, ``unbind``, ...

``torch.split`` takes sizes where ``jnp.split`` takes a number of equal parts or indices, and ``torch.chunk`` makes its
last chunk smaller where ``jnp.array_split`` evens them out.
"""

from __future__ import annotations

import ast
from itertools import accumulate

from t2j_lsp.translate.rule.facts import Fact, ListOf, Qual, Tensor, Tuple
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.library import Trait, numbered_by, trait
from t2j_lsp.translate.rule.pieces import ADD, ATOM, MULTIPLY, bracket, precedence
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, is_simple, rule
from t2j_lsp.translate.rule.windows import stacks_windows, windows

from ._arguments import LEGACY, integer, is_number, is_sequence, part_texts, parts, width_of
from ._facts import first, same

numbered_by("sections")

PAST_END = (
    "Where a window reaches past the end, PyTorch raises, since it is shorter, and JAX takes the last element again."
)
EMPTY_OF = {"torch.tensor", "torch.Tensor", *(f"torch.{name}" for name in LEGACY)}
EMPTY_OF_SIZE = EMPTY_OF - {"torch.tensor"} | {"torch.empty", "torch.zeros", "torch.ones"}
"""What makes a vector of no elements, of ``[]`` or of size 0."""


def _joined(call: Call) -> Fact:
    """As many axes as any of the arrays that are known to be no vectors: those may be empty and not count."""
    fact = call["tensors"].fact
    one = element(fact)
    if isinstance(one, Tensor) and one.rank is not None:
        return Tensor(one.rank, one.dtype)
    ranks = {part.rank or 0 for part in fact.items if isinstance(part, Tensor)} if isinstance(fact, Tuple) else set()
    rank = max(ranks, default=0)
    return Tensor(rank if rank > 1 else None, one.dtype if isinstance(one, Tensor) else None)


def _stacked(call: Call) -> Fact:
    one = element(call["tensors"].fact)
    one = one if isinstance(one, Tensor) else Tensor()
    return Tensor(None if one.rank is None else one.rank + 1, one.dtype) if isinstance(one, Tensor) else one


def _starts_empty(call: Call, node: ast.expr) -> bool:
    """Whether a variable is given a vector of no elements somewhere, or what a parameter is called after is."""
    for name, made in call.site.made(node, handed=True):
        given = [ast.unparse(argument) for argument in made.args]
        if name in EMPTY_OF and given == ["[]"] or name in EMPTY_OF_SIZE and given == ["0"]:
            return True
        if name in EMPTY_OF and not given and name != "torch.tensor":
            return True
    return False


@rule(
    "torch.cat(tensors, dim=0)",
    jax="jnp.concatenate(tensors, axis=dim)",
    aliases=["torch.concat", "torch.concatenate"],
    result=_joined,
)
def cat(call: Call) -> Piece | Refusal:
    """PyTorch leaves out empty vectors, whatever the rank of the others is; their dtype counts."""
    fact = call["tensors"].fact
    ranks = [one.rank if isinstance(one, Tensor) else None for one in fact.items] if isinstance(fact, Tuple) else []
    vectors = 1 in ranks
    dtypes = {one.dtype for one in fact.items if isinstance(one, Tensor)} if isinstance(fact, Tuple) else set()
    empty = vectors and any(rank is not None and rank > 1 for rank in ranks)
    texts = part_texts(call["tensors"]) if empty and len(dtypes) == 1 and None not in dtypes else []
    if texts and len(texts) == len(ranks):
        kept = ", ".join(text for text, rank in zip(texts, ranks, strict=True) if rank != 1)
        return call.emit("jnp.concatenate([{kept}], axis={dim?})", kept=kept)
    display = call["tensors"].node
    if isinstance(display, ast.List | ast.Tuple) and any(_starts_empty(call, one) for one in display.elts):
        return call.emit("joined({tensors}, axis={dim?})")
    if vectors and integer(call["dim"]) not in (None, 0, -1):
        return call.refuse("PyTorch leaves out an empty vector here, JAX raises: leave it out, or give it all axes")
    return call.emit("jnp.concatenate({tensors}, axis={dim?})")


def _of_numpy(call: Call) -> str:
    """``[data[i] for i in rows]`` of ``[torch.from_numpy(data[i]) for i in rows]``; empty where it is anything else."""
    match call["tensors"].node:
        case ast.ListComp(elt=ast.Call(func=func, args=[array], keywords=[]), generators=[each]):
            if call.site.fact(func) not in _FROM_NUMPY or each.ifs:
                return ""
        case _:
            return ""
    indices = {n for part in ast.walk(array) if isinstance(part, ast.Subscript) for n in ast.walk(part.slice)}
    if any(
        isinstance(call.site.fact(n), Tensor) for n in ast.walk(array) if isinstance(n, ast.expr) and n not in indices
    ):
        return ""
    text = call["tensors"].text
    match ast.parse(text, mode="eval").body:
        case ast.ListComp(
            elt=ast.Call(func=ast.Attribute(attr="asarray" | "array"), args=[inner], keywords=[]) as made,
            generators=[ast.comprehension(iter=walked)],
        ):
            of_tensor = isinstance(call.site.fact(each.iter), Tensor) and isinstance(walked, ast.Name)
            parts = [ast.get_source_segment(text, one) or "" for one in (made, inner, walked)]
            rows = f"np.asarray({parts[2]})" if of_tensor else parts[2]
            end = text.rindex(parts[2])
            return text[:end].replace(parts[0], parts[1], 1) + rows + text[end + len(parts[2]) :]
    return ""


_FROM_NUMPY = [Qual("torch.from_numpy")]


@rule("torch.stack(tensors, dim=0)", jax="jnp.stack(tensors, axis=dim)", result=_stacked)
def stack(call: Call) -> Piece:
    """Windows that begin where an array says, ``[data[i : i + n] for i in starts]``, are taken by one index.

    Arrays of NumPy are stacked as such: each ``jnp.asarray`` takes longer than all of that.
    """
    if arrays := _of_numpy(call):
        return call.emit("jnp.asarray(np.stack({arrays}, axis={dim?}))", arrays=arrays)
    if not stacks_windows(call.node, call.site.fact):
        return call.emit("jnp.stack({tensors}, axis={dim?})")
    made = windows(ast.parse(call["tensors"].text, mode="eval").body)
    assert made is not None
    first, end = (" + ".join(map(ast.unparse, terms)) for terms in (made.first, made.end))
    array, starts = (bracket(Piece(ast.unparse(one), precedence(one)), ATOM) for one in (made.array, made.starts))
    call.note(PAST_END)
    given = {"array": array, "starts": starts, "first": Piece(first) if first else None, "end": Piece(end)}
    form = "jnp.arange({first}, {end})" if first else "jnp.arange({end})"
    return call.emit(f"{{array}}[{{starts}}[:, None] + {form}]", **given)


trait(Trait.STACKS, "torch.stack")


Row("torch.hstack(tensors)", "jnp.hstack({tensors})", result=_joined)
Row("torch.vstack(tensors)", "jnp.vstack({tensors})", aliases=["torch.row_stack"])
Row("torch.dstack(tensors)", "jnp.dstack({tensors})")
Row("torch.column_stack(tensors)", "jnp.column_stack({tensors})")


@rule("torch.block_diag(*tensors)", jax="jax.scipy.linalg.block_diag(*xs)", result=lambda call: Tensor(2))
def block_diag(call: Call) -> Piece:
    return call.emit("jax.scipy.linalg.block_diag({tensors})", tensors=", ".join(i.text for i in call["tensors"].items))


@rule("torch.cartesian_prod(*tensors)", jax='jnp.stack(jnp.meshgrid(*xs, indexing="ij"), axis=-1).reshape(-1, n)')
def cartesian_prod(call: Call) -> Piece | None:
    items = [i.text for i in call["tensors"].items]
    if len(items) == 1 and not items[0].startswith("*") and isinstance(call["tensors"].items[0].fact, Tensor):
        return call.emit("{tensors}", tensors=call["tensors"].items[0])
    if len(items) < 2 or any(text.startswith("*") for text in items):
        return None
    template = 'jnp.stack(jnp.meshgrid({tensors}, indexing="ij"), axis=-1).reshape(-1, {count})'
    return call.emit(template, tensors=", ".join(items), count=str(len(items)))


# Splitting ------------------------------------------------------------------------------------------------------


def _parts(call: Call) -> Fact:
    return ListOf(same(call))


def _split_sizes(call: Call, name: str, sizes: str) -> Piece:
    """Split into parts of the sizes that the argument ``sizes`` lists: ``jnp.split`` wants where the parts end."""
    written = parts(call[sizes])
    template = f"jnp.split({{{name}}}, {{cuts}}, axis={{dim?}})"
    if written is not None and len(written) > 1:
        texts = part_texts(call[sizes])
        if all(text.isdigit() for text in texts):
            return call.emit(template, cuts=str(list(accumulate(map(int, texts[:-1])))))
        if len(texts) == 2:
            return call.emit(template, cuts=f"[{texts[0]}]")
        if len(texts) == 3 and is_simple(written[0]):
            first, second = (bracket(Piece(texts[i], precedence(written[i])), ADD) for i in (0, 1))
            return call.emit(template, cuts=f"[{texts[0]}, {first} + {second}]")
    return call.emit(f"jnp.split({{{name}}}, np.cumsum({{{sizes}}})[:-1], axis={{dim?}})")


@rule(
    "torch.split(tensor, split_size_or_sections, dim=0)",
    jax="split(x, sizes, axis)",
    result=_parts,
)
def split(call: Call) -> Piece:
    return _split(call, "tensor", "split_size_or_sections")


for name in ("split_copy", "unsafe_split"):

    @rule(
        f"torch.{name}(input, split_size, dim=0)",
        jax="split(x, sizes, axis)",
        method=name == "unsafe_split",
        result=_parts,
    )
    def split_copied(call: Call) -> Piece:
        return _split(call, "input", "split_size")


@rule("torch.Tensor.split(self, split_size, dim=0)", jax="split(x, sizes, axis)", result=_parts)
def split_method(call: Call) -> Piece:
    return _split(call, "self", "split_size")


def _is_product(node: ast.expr | None, count: int, factor: ast.expr | None) -> bool:
    """Whether ``node`` is ``count * factor``; the factor may be the parameter that an attribute was set from."""
    match node:
        case ast.BinOp(left=ast.Constant(value=value), op=ast.Mult(), right=other) if value == count:
            return _last_name(other) == _last_name(factor) != ""
        case ast.BinOp(left=other, op=ast.Mult(), right=ast.Constant(value=value)) if value == count:
            return _last_name(other) == _last_name(factor) != ""
        case _:
            return False


def _last_name(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _split(call: Call, name: str, sizes: str) -> Piece:
    argument = call[sizes]
    if is_sequence(argument):
        return _split_sizes(call, name, sizes)
    count = call.site.unpacked
    if count and _is_product(width_of(call, name), count, argument.node):
        return call.emit(f"jnp.split({{{name}}}, {count}, axis={{dim?}})")
    if 2 <= count <= 4 and is_number(argument) and argument.simple:
        size, number = argument.operand(MULTIPLY + 1), integer(argument)
        more = (f"{i} * {size}" if number is None else str(i * number) for i in range(2, count))
        cuts = [argument.text, *more]
        return call.emit(f"jnp.split({{{name}}}, {{cuts}}, axis={{dim?}})", cuts=f"[{', '.join(cuts)}]")
    return call.emit(f"split({{{name}}}, {{{sizes}}}, axis={{dim?}})")


@rule(
    "torch.split_with_sizes(input, split_sizes, dim=0)",
    jax="jnp.split(x, cuts, axis)",
    method=True,
    aliases=[
        "torch.split_with_sizes_copy",
        "torch.unsafe_split_with_sizes",
        "torch.Tensor.unsafe_split_with_sizes",
    ],
    result=_parts,
)
def split_with_sizes(call: Call) -> Piece:
    return _split_sizes(call, "input", "split_sizes")


def _is_multiple(node: ast.expr | None, count: int) -> bool:
    match node:
        case ast.Constant(value=int() as value):
            return value % count == 0
        case ast.BinOp(op=ast.Mult()):
            return _is_multiple(node.left, count) or _is_multiple(node.right, count)
        case _:
            return False


@rule(
    "torch.chunk(input, chunks, dim=0)",
    jax="chunk(x, chunks, axis)",
    method=True,
    aliases=["torch.unsafe_chunk", "torch.Tensor.unsafe_chunk"],
    result=_parts,
)
def chunk(call: Call) -> Piece:
    """Two chunks are the same in NumPy's reckoning: the first is the longer one."""
    count = integer(call["chunks"])
    if count is not None and call.site.unpacked == count and _is_multiple(width_of(call, "input"), count):
        return call.emit("jnp.split({input}, {chunks}, axis={dim?})")
    if count == 2 and call.site.unpacked == 2:
        return call.emit("jnp.array_split({input}, 2, axis={dim?})")
    return call.emit("chunk({input}, {chunks}, axis={dim?})")


@rule(
    "torch.tensor_split(input, sections, dim=0)",
    "torch.tensor_split(input, indices, dim=0)",
    jax="jnp.array_split(x, indices_or_sections, axis)",
    method=True,
    result=_parts,
)
def tensor_split(call: Call) -> Piece:
    name = list(call.arguments)[1]
    return call.emit(f"jnp.array_split({{input}}, {{{name}}}, axis={{dim?}})")


for name in ("hsplit", "vsplit", "dsplit"):

    @rule(
        f"torch.{name}(input, sections)",
        f"torch.{name}(input, indices)",
        jax=f"jnp.{name}(x, sections)",
        method=True,
        result=_parts,
    )
    def split_along(call: Call, name: str = name) -> Piece:
        return call.emit(f"jnp.{name}({{input}}, {{{list(call.arguments)[1]}}})")


def _unbound(call: Call) -> Fact:
    one = first(call).fact
    return ListOf(
        Tensor(None if one.rank is None else one.rank - 1, one.dtype) if isinstance(one, Tensor) else Tensor()
    )


Row(
    "torch.unbind(input, dim=0)",
    "jnp.unstack({input}, axis={dim?})",
    method=True,
    aliases=["torch.unbind_copy"],
    result=_unbound,
)
