"""Rows that are looked up only to be filled: ``rows = torch.nonzero(y == pad); x.index_fill_(0, rows.squeeze(), 0)``.

How many rows there are isn't known under jit; which they are is what the mask says that they are looked up by:
``x[y == pad] = 0``. Where a file that has gaps does so, it is read as if it filled by the mask.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from t2j_lsp.contract import Finding
from t2j_lsp.translate.expressions.walk_order import reads_of
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.item_stores import is_mask
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText


@dataclass(frozen=True)
class Positions:
    """The positions at which a mask is true, ``torch.nonzero(mask)``."""

    mask: ast.expr
    column: bool
    """Whether they stand in a column, one row for each: ``(n, 1)``."""
    checked: bool = True
    """Whether a mask with more axes than one would fail as an index of ``index_fill``."""


def with_rows_filled_by_masks(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such rows are filled by their masks; None if there are none, or everything converts."""
    source = inference.source
    if "nonzero" not in source.words or not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.Assign) and (positions := _positions(inference, node.value)) is not None:
            edits += _by_mask(inference, node, positions) or []
    return RearrangedText.of(source.text, edits)


def _positions(inference: Inference, node: ast.expr) -> Positions | None:
    """``torch.nonzero(mask)``, ``(y == pad).nonzero()``, and the same with its axis of length 1 taken off."""
    match node:
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
            mask = _looked_up(inference, call, as_tuple=True)
            return Positions(mask, column=False, checked=False) if mask is not None and _rank(inference, mask) else None
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if isinstance(inner, ast.Call):
            positions = _positions(inference, inner)
            if positions is not None and positions.column and (flat := _flattened(node, name)):
                return Positions(positions.mask, column=False, checked=flat == "squeeze")
            return None
        case ast.Call():
            mask = _looked_up(inference, node, as_tuple=False)
            return Positions(mask, column=True) if mask is not None else None
    return None


def _looked_up(inference: Inference, call: ast.Call, as_tuple: bool) -> ast.expr | None:
    """The mask of a call of ``nonzero``, which has no other axis than one as far as is known."""
    options = [(k.arg, getattr(k.value, "value", None)) for k in call.keywords]
    if options != [("as_tuple", True)] if as_tuple else options not in ([], [("as_tuple", False)]):
        return None
    fact = inference.fact(call.func)
    match call:
        case ast.Call(args=[mask]) if isinstance(fact, Qual) and fact.name in names_with(Trait.SIZED_BY_VALUES):
            if not fact.name.endswith(".nonzero"):
                return None
            pass
        case ast.Call(func=ast.Attribute(value=mask, attr="nonzero"), args=[]) if not isinstance(fact, Qual):
            pass
        case _:
            return None
    return mask if is_mask(mask, inference.facts) and _rank(inference, mask) in (1, None) else None


def _rank(inference: Inference, mask: ast.expr) -> int | None:
    fact = inference.fact(mask)
    return fact.rank if isinstance(fact, Tensor) else None


def _flattened(call: ast.Call, name: str) -> str:
    """``.squeeze()``, ``.squeeze(1)``, ``.flatten()`` and ``.view(-1)``, which make a vector of a column."""
    given = [ast.unparse(a) for a in (*call.args, *call.keywords)]
    if name == "squeeze":
        return name if given in ([], ["1"], ["-1"]) else ""
    return name if name == "flatten" and not given or name in ("view", "reshape") and given == ["-1"] else ""


def _by_mask(inference: Inference, node: ast.Assign, positions: Positions) -> Edits | None:
    """The edits by which the mask has the name, and fills; None where the positions are read in another way."""
    reads, source = reads_of(inference, node), inference.source
    if not reads:
        return None
    fills: dict[ast.stmt, str] = {}
    conditions: dict[ast.If, None] = {}
    for read in reads:
        around = source.parents[read]
        while not isinstance(around, ast.stmt):
            around = source.parents[around]
        if isinstance(around, ast.If):
            conditions[around] = None
        elif (filled := _filled(inference, around, read, positions)) is not None:
            fills[around] = filled
        else:
            return None
    if not all(_asks_for_any(one, node, positions) and set(one.body) <= set(fills) for one in conditions):
        return None
    start, end = source.span(node.value)
    mask = source.span(positions.mask)
    edits: Edits = [(start, end, [Fragment(source.segment(positions.mask), *mask)])]
    inside = {statement for one in conditions for statement in one.body}
    for at in [*conditions, *(one for one in fills if one not in inside)]:
        start, end = source.span(at)
        lines = [fills[one] for one in (at.body if isinstance(at, ast.If) else [at])]
        if "#" in source.text[start:end] or not source.starts_line(at):
            return None
        edits.append((start, end, [Fragment(f"{source.newline}{source.indent(at.lineno)}".join(lines), start, end)]))
    return edits


def _filled(inference: Inference, node: ast.stmt, read: ast.Name, positions: Positions) -> str | None:
    """``x.index_fill_(0, rows.squeeze(), 0)`` and ``x[rows] = 0``, by the mask; None for anything else."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name() as held, attr="index_fill_"),
                args=[ast.Constant(value=0), index, value],
                keywords=[],
            )
        ):
            checked = positions.checked
        case ast.Assign(targets=[ast.Subscript(value=ast.Name() as held, slice=index)], value=value):
            checked = False
        case _:
            return None
    flat = ""
    if index is not read and isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute):
        flat = _flattened(index, index.func.attr) if index.func.value is read else ""
    if (not flat if positions.column else index is not read) or held.id == read.id:
        return None
    checked = checked and flat in ("", "squeeze")
    if not checked and _rank(inference, positions.mask) != 1 or not isinstance(inference.fact(value), Scalar):
        return None
    return f"{held.id}[{read.id}] = {inference.source.segment(value)}"


def _asks_for_any(node: ast.If, made: ast.Assign, positions: Positions) -> bool:
    """Whether a condition holds wherever there is a row to fill: ``rows.numel() > 0``, and ``rows.dim() > 0``."""
    name, test = ast.unparse(made.targets[0]), ast.unparse(node.test)
    many = [f"{name}.numel()", f"{name}.nelement()"]
    if positions.column:  # A single position without its column has no axes.
        many += [f"len({name})", f"{name}.shape[0]", f"{name}.size(0)", f"{name}.dim()", f"{name}.ndim"]
    asked = {*many, *(f"{one} {more}" for one in many for more in ("> 0", "!= 0", ">= 1"))}
    return test in asked and not node.orelse
