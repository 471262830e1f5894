"""Operations that name axes: on channels-last values they name others, ``torch.cat([a, b], 1)`` joins the last one.

An axis that is counted from the front speaks of values with a batch, as a layer's usual input has one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tuple
from t2j_lsp.translate.rule.library import Trait, names_with

from .scene import Last, Marking

_JOINS = names_with(Trait.JOINS_AXIS)
_PARTS = names_with(Trait.PARTS_AXIS)
_REDUCES = names_with(Trait.REDUCES_AXES)
_ALONG = names_with(Trait.ALONG_AXIS)
_SIZES = names_with(Trait.SIZES)
_SPREADS = names_with(Trait.LIKE_OTHER)
_FLATTENS = names_with(Trait.FLATTENS)
_SHAPED = names_with(Trait.SHAPED)
_ABOUT = names_with(Trait.ABOUT)


class Axes:
    """Marks the operations of a file that name axes."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference

    def mark(self, values: Marking, node: ast.AST) -> tuple[bool, Last | None]:
        """Mark an operation and what is in it; whether it is one, and what it gives if that is channels-last."""
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=held, attr=attr)
                | ast.Call(func=ast.Attribute(value=held, attr=attr), args=[], keywords=[])
            ) if attr in _SIZES:
                return self._size_of(values, held, node.slice), None
            case ast.Assign(
                targets=[ast.Tuple(elts=names)],
                value=ast.Attribute(value=held, attr=attr)
                | ast.Call(func=ast.Attribute(value=held, attr=attr), args=[], keywords=[]),
            ) if attr in _SIZES:
                return self._sizes_of(values, held, names), None
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Call() as call) if all(
                isinstance(name, ast.Name) for name in names
            ):
                return self._parted(values, node, call)
            case ast.Subscript(value=held, slice=index, ctx=ast.Load()):
                return True, self._indexed(values, held, index)
            case ast.Attribute(value=held, attr=attr) if attr in _ABOUT and attr not in _SIZES:
                value = values.mark(held)
                if value is not None:
                    values.want(held, value.rank, free=True)
                return True, None
            case ast.Call():
                return self._call(values, node)
        return False, None

    def _call(self, values: Marking, node: ast.Call) -> tuple[bool, Last | None]:
        operation = self._operation(node)
        if operation is None:
            return False, None
        name, given, places = operation
        if name in _JOINS:
            return self._joined(values, node, given, argument(node, places, "dim"))
        if name in _REDUCES or name in _ALONG:
            return self._along(values, node, name, given, places)
        if name in _SIZES and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and not node.keywords:
            return self._size_of(values, given, node.args[0]), None
        if name in _SPREADS and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            return True, self._like(values, given, node.args[0])
        if name in _FLATTENS:
            return self._flattened(values, node, name, given, places), None
        return False, None

    def _operation(self, node: ast.Call) -> tuple[str, ast.expr, int] | None:
        """The name of an operation, the value that it is of, and the place of the argument behind that."""
        fact = self.inference.facts.get(node.func)
        if isinstance(fact, Qual):
            name = fact.name.rpartition(".")[2]
            return (name, node.args[0], 1) if node.args and fact.name.startswith("torch.") else None
        if isinstance(node.func, ast.Attribute) and not isinstance(fact, Qual):
            return node.func.attr, node.func.value, 0
        return None

    # --- one by one -----------------------------------------------------------------------------------------------

    def _joined(
        self, values: Marking, node: ast.Call, given: ast.expr, dim: ast.expr | None
    ) -> tuple[bool, Last | None]:
        if not isinstance(given, ast.List | ast.Tuple) or not isinstance(node.func, ast.Attribute | ast.Name):
            return False, None
        held = [values.mark(one) for one in given.elts]
        for other in [*node.args[1:], *(k.value for k in node.keywords)]:
            values.mark(other)
        first = held[0] if held else None
        if first is None or any(one is None or one.rank != first.rank for one in held):
            return True, None
        axes = self._renamed(dim, first.rank) if dim is not None else {}
        if axes is None:
            return True, None
        for one in given.elts:
            values.want(one, first.rank)
        values.marks.texts |= axes
        return True, Last(first.rank, False)

    def _along(
        self, values: Marking, node: ast.Call, name: str, given: ast.expr, places: int
    ) -> tuple[bool, Last | None]:
        value = values.mark(given)
        for other in [*node.args, *(k.value for k in node.keywords)]:
            if other is not given:
                values.mark(other)
        dim, keep = argument(node, places, "dim"), argument(node, places + 1, "keepdim")
        if value is None or name in _REDUCES and keep is not None and not isinstance(keep, ast.Constant):
            return True, None
        if dim is None:
            if name in _REDUCES and len(node.args) == places and not node.keywords:
                values.want(given, value.rank, free=True)
            return True, None
        axes = self._renamed(dim, value.rank)
        if axes is None:
            return True, None
        gone = {_counted(text, value.rank) for text in axes.values()} if name in _REDUCES else set()
        space, channels = set(range(1, value.rank + 1)), value.rank + 1
        kept = not gone or isinstance(keep, ast.Constant) and keep.value is True
        if not kept and channels not in gone and not space <= gone:
            return True, None  # channels would stand behind axes of space
        values.want(given, value.rank, free=not kept)
        values.marks.texts |= axes
        return True, Last(value.rank, value.single or space <= gone) if kept else None

    def _parted(self, values: Marking, node: ast.Assign, call: ast.Call) -> tuple[bool, Last | None]:
        """``a, b = x.chunk(2, dim=1)``: each of the parts is what the whole is."""
        operation = self._operation(call)
        if operation is None or operation[0] not in _PARTS:
            return False, None
        _, given, places = operation
        value = values.mark(given)
        for other in [*call.args, *(k.value for k in call.keywords)]:
            if other is not given:
                values.mark(other)
        dim = argument(call, places + 1, "dim")
        axes = self._renamed(dim, value.rank) if dim is not None and value is not None else None
        if value is None or axes is None or node in values.kept:
            return True, None
        values.want(given, value.rank)
        values.marks.texts |= axes
        return True, Last(value.rank)

    def _indexed(self, values: Marking, held: ast.expr, index: ast.expr) -> Last | None:
        """``x[:, :c]`` is ``x[..., :c]``: a part along some axes, or what is left without them."""
        value = values.mark(held)
        values.mark(index)
        if value is None:
            return None
        along = _every_axis(index, value.rank)
        texts = _put_last(index, along) if along is not None else None
        if along is None or texts is None:
            return None
        gone = {axis for axis, one in enumerate(along) if one is not None and _number(one) is not None}
        if gone and (0 in gone or 1 not in gone and len(gone) < value.rank):
            return None
        values.want(held, value.rank, free=bool(gone))
        values.marks.texts |= texts
        return None if gone else value

    def _size_of(self, values: Marking, held: ast.expr, index: ast.expr) -> bool:
        value = values.mark(held)
        if value is None:
            return True
        axes = self._sliced(index, value.rank) if isinstance(index, ast.Slice) else self._renamed(index, value.rank)
        if axes is not None:
            values.want(held, value.rank, free=True)
            values.marks.texts |= axes
        return True

    def _sizes_of(self, values: Marking, held: ast.expr, names: list[ast.expr]) -> bool:
        """``b, c, h, w = x.shape`` is ``b, h, w, c = x.shape``."""
        value = values.mark(held)
        if value is not None and len(names) == value.rank + 2 and all(isinstance(n, ast.Name) for n in names):
            values.want(held, value.rank, free=True)
            values.marks.texts |= dict(zip(names[1:], [*names[2:], names[1]], strict=True))
        return True

    def _like(self, values: Marking, given: ast.expr, other: ast.expr) -> Last | None:
        first, second = values.mark(given), values.mark(other)
        if second is None:
            return None
        if first is None:
            if values.scene.spread(given) != second.rank:
                return None
            first = values.spread(given, second.rank)
        if first.rank != second.rank:
            return None
        values.want(given, first.rank)
        values.want(other, second.rank)
        return Last(second.rank, second.single)

    def _flattened(self, values: Marking, node: ast.Call, name: str, given: ast.expr, places: int) -> bool:
        value = values.mark(given)
        rest = [one for one in node.args if one is not given]
        for other in [*rest, *(k.value for k in node.keywords)]:
            values.mark(other)
        if value is None or not value.single or node.keywords:
            return True
        features = len(rest) == 2 if name in _SHAPED else [ast.unparse(one) for one in rest] == ["1"]
        if features:
            values.want(given, value.rank, free=True)  # (N, 1, 1, C) and (N, C, 1, 1) have the same order
        return True

    # --- axes -----------------------------------------------------------------------------------------------------

    def _renamed(self, node: ast.expr, rank: int) -> dict[ast.expr, str | ast.expr] | None:
        """What the axes are called that an argument names, by their expressions; None where they aren't known."""
        named = list(_elements(node))
        renamed: dict[ast.expr, str | ast.expr] = {}
        for one in named:
            axis = _number(one)
            if axis is None or not -rank - 2 <= axis < rank + 2:
                return None
            renamed[one] = str(last_axis(axis, rank))
        return renamed

    def _sliced(self, node: ast.Slice, rank: int) -> dict[ast.expr, str | ast.expr] | None:
        """The axes of space in ``shape[2:]`` and ``shape[-2:]``."""
        lower = _number(node.lower) if node.lower is not None else None
        if node.upper is not None or node.step is not None or lower not in (2, -rank) or node.lower is None:
            return None
        return {node: f"{'1' if lower == 2 else -rank - 1}:-1"}

    def learn(self, texts: dict[ast.expr, str | ast.expr]) -> None:
        """Let rules see the axes as they are written."""
        for node, text in texts.items():
            if isinstance(text, str) and text.lstrip("-").isdecimal():
                self.inference.facts[node] = Scalar("int", int(text))
                several = self.inference.source.parents[node]
                if isinstance(several, ast.List | ast.Tuple) and isinstance(self.inference.facts.get(several), Tuple):
                    self.inference.facts[several] = Tuple(tuple(map(self.inference.fact, several.elts)))


def last_axis(axis: int, rank: int) -> int:
    """Where an axis of ``(N, C, *space)`` stands in ``(N, *space, C)``, counted from the side that it was."""
    if axis in (1, -rank - 1):
        return -1
    if axis >= 2:
        return axis - 1
    return axis if axis in (0, -rank - 2) else axis - 1


def _counted(text: str | ast.expr, rank: int) -> int:
    axis = int(str(text))
    return axis if axis >= 0 else axis + rank + 2


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def _every_axis(index: ast.expr, rank: int) -> list[ast.expr | None] | None:
    """The slice or the number for each of an image's axes, None for all of one; None where it is something else."""
    given: list[ast.expr | None] = [*_elements(index)]
    missing = [None] * (rank + 3 - len(given))
    if isinstance(given[0], ast.Constant) and given[0].value is ...:
        given[:1] = missing
    else:
        given += missing[1:]
    every = [None if isinstance(one, ast.Slice) and ast.unparse(one) == ":" else one for one in given]
    plain = all(one is None or isinstance(one, ast.Slice) or _number(one) is not None for one in every)
    return every if plain and len(every) == rank + 2 else None


def _put_last(index: ast.expr, along: list[ast.expr | None]) -> dict[ast.expr, str | ast.expr] | None:
    """An index of channels-last values, by expressions that are written otherwise; None where that can't be said."""
    batch, channels, *space = along
    order = [batch, *space, channels]
    elements = list(_elements(index))
    literal = all(
        isinstance(n, ast.Constant | ast.UnaryOp | ast.USub | ast.Slice)
        for one in order
        if one
        for n in symbols.walk(one)
    )
    if literal:
        texts = [ast.unparse(one) if one is not None else ":" for one in order]
        while texts[-1:] == [":"]:
            texts.pop()
        if len(texts) > 2 and set(texts[:-1]) == {":"}:
            texts[:-1] = ["..."]
        return {index: ", ".join(texts) or ":"}
    if batch is None and not any(space) and len(elements) == 2:
        return {elements[0]: "..."}
    if len(elements) != len(along):
        return None
    return dict(zip(elements[1:], [*elements[2:], elements[1]], strict=True))


def _elements(node: ast.expr) -> Iterable[ast.expr]:
    def several(node: ast.List | ast.Tuple) -> Iterator[ast.expr]:
        yield from node.elts

    return several(node) if isinstance(node, ast.List | ast.Tuple) else [node]
