"""Subscripts: JAX takes no lists as indices, and writes into parts ask for the text of an index."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.constant_masks import constant_masks
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.inference.item_stores import is_mask, is_named_as_mask, may_be_mask
from t2j_lsp.translate.inference.old_items import old_items
from t2j_lsp.translate.rule.facts import PACKED, Fact, ListOf, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.pieces import ATOM, Part, Piece, bracket
from t2j_lsp.translate.rule.windows import stacks_windows
from t2j_lsp.translate.source.list_items import is_empty
from t2j_lsp.translate.source.walked import walked_by

from .context import Context
from .copying import Copier
from .handlers import ExpressionRenderer
from .hashed_arrays import report_hashed
from .known_values import KnownValues

CUT_BY_VALUES = "a slice whose bounds are array values fails under jit: use jax.lax.dynamic_slice, or a mask"
PICKED_BY_MASK = "what a mask picks has a size that depends on values, and this fails under jit: use jnp.where"

UNPADDED = "PyTorch stores a packed sequence without padding; here it has its padding: take it by pad_packed_sequence"
OLD_ITEM = "a tensor without axes has had no item 0 since PyTorch 0.4: write .item()"


class Subscripts:
    """What subscripts and their indices become."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, copier: Copier, values: KnownValues) -> None:
        self.ctx = context
        self.values = values
        self.code = values.code
        self.renderer = renderer
        self.copier = copier

    def subscript(self, node: ast.Subscript) -> Piece | None:
        """``x.max(1)[0]`` and ``x[[0, 2]]``: JAX takes no lists as indices."""
        if isinstance(node.value, ast.Call) and isinstance(part := self.renderer.render(node.value), Part):
            return Piece(part.text, part.precedence)
        if node in old_items(self.ctx.inference):
            self.ctx.report.gap(node, "Tensor.data", "torch-only", OLD_ITEM)
        report_hashed(self.ctx, node)
        held = self.ctx.fact(node.value)
        if held == PACKED:
            self.ctx.report.gap(node, "PackedSequence.__getitem__", "torch-only", UNPADDED)
        if isinstance(node.ctx, ast.Load) and (item := self._item_of_list(node, held)) is not None:
            return item
        if not isinstance(node.ctx, ast.Load) or not isinstance(held, Tensor) and is_known(held):
            return None
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if self.code.is_traced and any(self._may_pick(part, isinstance(held, Tensor)) for part in parts):
            self.ctx.report.note(node, "Tensor.__getitem__", "value-needed", PICKED_BY_MASK)
        if not isinstance(held, Tensor) and not any(map(self._shows_array, parts)):
            return None
        self._note_bounds(node, "Tensor.__getitem__")
        lists = [p for p in parts if isinstance(p, ast.List) or self._is_list(p)]
        if not lists:
            return None
        others = [p for p in parts if p not in lists]
        if len(lists) == 1 and all(isinstance(p, ast.Slice) or _marker(p) for p in others):
            narrowed = _as_slice(lists[0])
            if narrowed:
                texts = [narrowed if p in lists else self.renderer.render(p).text for p in parts]
                return Piece(f"{bracket(self.copier.render_in(node, 'value', node.value), ATOM)}[{', '.join(texts)}]")
        texts = [self._array(p) if p in lists else self.renderer.render(p).text for p in parts]
        return Piece(f"{bracket(self.copier.render_in(node, 'value', node.value), ATOM)}[{', '.join(texts)}]")

    def _item_of_list(self, node: ast.Subscript, held: Fact) -> Piece | None:
        """``words[i.item()]`` for ``words[i]`` of a list and a tensor of one element, which in JAX may have no axes."""
        index = self.ctx.fact(node.slice)
        listed = isinstance(held, Tuple) or isinstance(held, ListOf) and held.keys is None
        a_list = listed or isinstance(held, Scalar) and held.kind == "str"
        if not a_list or not isinstance(index, Tensor) or index.rank == 0 or index.dtype not in (None, "int"):
            return None
        number = f"{bracket(self.renderer.argument(node.slice), ATOM)}.item()"
        return Piece(f"{bracket(self.copier.render_in(node, 'value', node.value), ATOM)}[{number}]")

    def _is_list(self, index: ast.expr) -> bool:
        """Whether an index is a list that picks elements: one of numbers, and no tuple, which has one for each axis."""
        fact = self.ctx.fact(index)
        if not isinstance(fact, ListOf | Tuple):
            return False
        given = [index, *self._given(index)]
        numbers = isinstance(element(fact), Scalar | ListOf | Tensor)
        shown = any(map(_is_list, given)) or numbers and isinstance(fact, ListOf)
        return shown and not any(map(_is_tuple, given))

    def _given(self, node: ast.expr) -> Iterator[ast.expr]:
        """What a name or attribute is assigned in the file, and how a parameter of that name is annotated."""
        for one in self.ctx.source.nodes if isinstance(node, ast.Name | ast.Attribute) else ():
            match one:
                case ast.Assign(targets=targets, value=value):
                    if any(isinstance(t, type(node)) and _same(t, node) for t in targets):
                        yield value
                case ast.arg(arg=name, annotation=ast.expr() as kind) if isinstance(node, ast.Name) and name == node.id:
                    yield kind

    def _may_pick(self, index: ast.expr, of_tensor: bool) -> bool:
        """Whether an index may be a mask whose values decide how much it picks, for a tensor by its name alone."""
        named = of_tensor and may_be_mask(index, self.ctx.inference.facts) or self._is_part_of_mask(index, of_tensor)
        return (named or self.is_mask(index)) and index not in constant_masks(self.ctx.inference).known

    def may_pick(self, index: ast.expr) -> bool:
        """Whether an index of a tensor is computed as masks are, where its values aren't known as the code runs."""
        return self.code.is_traced and self.is_mask(index) and index not in constant_masks(self.ctx.inference).known

    def _is_part_of_mask(self, index: ast.expr, of_tensor: bool) -> bool:
        """Whether an index is one of several masks by their name: ``x[m] for x, m in zip(xs, masks)``, ``x[ms[i]]``."""
        state = self.ctx.inference.state
        if not of_tensor and (state.other_arrays or not self.code.among_tensors):
            return False
        whole = walked_by(index, self.ctx.source.parents) if isinstance(index, ast.Name) else None
        whole = index.value if isinstance(index, ast.Subscript) else whole
        fact = self.ctx.fact(index)
        known = fact.dtype is not None if isinstance(fact, Tensor) else is_known(fact)
        return whole is not None and not known and is_named_as_mask(whole)

    def is_mask(self, index: ast.expr, follow: int = 3) -> bool:
        """Whether an index is an array of booleans, or what a comparison of unknown values gives, also by a name."""
        fact = self.ctx.fact(index)
        if isinstance(fact, ListOf):
            listed = self.code.origin(index)
            return isinstance(listed, ast.ListComp) and not _is_of_text(listed.elt) and self.is_mask(listed.elt)
        if isinstance(fact, Tensor) or is_known(fact):
            return is_mask(index, self.ctx.inference.facts)
        match index:
            case ast.UnaryOp(op=ast.Invert(), operand=inner) | ast.Subscript(value=inner):
                return self.is_mask(inner, follow)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
                return self.is_mask(left, follow) or self.is_mask(right, follow)
            case ast.Name():
                return follow > 0 and self.is_mask(self.code.origin(index), follow - 1)
        return is_mask(index, self.ctx.inference.facts)

    def index(self, target: ast.Subscript) -> str:
        """The index of a subscript that is written to, rendered."""
        self._note_bounds(target, "Tensor.__setitem__")
        start, _ = self.ctx.source.span(target.slice)
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if any(map(self._picks, parts)):
            return ", ".join(map(self._picked, parts))
        text = self.renderer.render(target.slice).text
        if isinstance(target.slice, ast.Tuple) and self.ctx.source.text[start] == "(" and not text.startswith("("):
            return f"({text})"
        return text

    def _picks(self, part: ast.expr) -> bool:
        """Whether a part of an index is a list or range of numbers, which JAX takes as an array."""
        return isinstance(part, ast.List) or self._is_list(part) or _is_range(self.code.origin(part))

    def _picked(self, part: ast.expr) -> str:
        return self._array(part) if self._picks(part) else self.renderer.render(part).text

    def _array(self, part: ast.expr) -> str:
        """An index that is a list, as an array: of integers, where it begins without any and may stay so.

        A mask is NumPy's, whose values are known where JAX traces what it picks from.
        """
        begins_empty = isinstance(part, ast.Name) and is_empty(self.code.origin(part))
        library = self.renderer.need("np" if self._is_list_of_truths(part) else "jnp")
        return f"{library}.array({self.renderer.render(part).text}{', int' if begins_empty else ''})"

    def _is_list_of_truths(self, part: ast.expr) -> bool:
        if is_known(known := element(self.ctx.fact(part))):
            return isinstance(known, Scalar) and known.kind == "bool"
        match self.code.origin(part):
            case ast.ListComp(elt=item):
                return _is_truth(item)
            case ast.List(elts=[_, *_] as items):
                return all(map(_is_truth, items))
        return False

    def _shows_array(self, part: ast.expr) -> bool:
        """Whether only arrays take such an index, where a file has no others: ``x[[0, 2]]``."""
        if not isinstance(part, ast.List) or self.ctx.inference.state.other_arrays:
            return False
        return self.ctx.inference.imports_torch and bool(part.elts) and all(map(_is_number, part.elts))

    def _note_bounds(self, node: ast.Subscript, name: str) -> None:
        """Say so where a slice is as long as values make it."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        bounds = [bound for p in parts if isinstance(p, ast.Slice) for bound in (p.lower, p.upper, p.step) if bound]
        if not any(map(self.values.bound, bounds)) or not self.code.is_traced:
            return
        around = ancestors(node, self.ctx.source.parents)
        if not any(stacks_windows(at, self.ctx.fact) for at in itertools.islice(around, 2)):
            self.ctx.report.note(node, name, "value-needed", CUT_BY_VALUES)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _is_tuple(node: ast.expr) -> bool:
    """Whether it is surely a tuple, or what annotates one."""
    match node:
        case ast.Tuple() | ast.Call(ast.Name("tuple")) | ast.Subscript(ast.Name("tuple" | "Tuple")):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_tuple(left) or _is_tuple(right)
    return False


def _is_list(node: ast.expr) -> bool:
    """Whether it is surely a list of more than slices, or what annotates one."""
    match node:
        case ast.List(elts=items):
            return not any(isinstance(item, ast.Call | ast.Constant) and not _is_number(item) for item in items)
        case ast.ListComp() | ast.Call(ast.Name("list" | "sorted")) | ast.Name("list" | "List"):
            return True
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("list", "List", "typing.List")


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_truth(node: ast.expr) -> bool:
    """Whether a value is True or False: a comparison, ``not x``, one of these constants."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.BoolOp(values=values):
            return all(map(_is_truth, values))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("bool", "isinstance")


def _is_of_text(node: ast.expr) -> bool:
    """Whether a value is compared with a text: ``kind == "train"``."""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in sides)


def _same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions have the same text."""
    return ast.unparse(one) == ast.unparse(other)


def _marker(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, Ellipsis)


def _as_slice(node: ast.expr) -> str:
    """``[-1]`` as an index keeps the axis, as the slice ``-1:`` does; empty if it isn't one literal number."""
    if not isinstance(node, ast.List) or len(node.elts) != 1:
        return ""
    try:
        value = ast.literal_eval(node.elts[0])
    except ValueError:
        return ""
    if not isinstance(value, int):
        return ""
    return "-1:" if value == -1 else f"{value}:{value + 1}"
