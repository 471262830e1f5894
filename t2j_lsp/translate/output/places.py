"""The places of a source: those with a JAX form of their own, and those whose statement tells what became of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from t2j_lsp.contract import Rewrite, Span
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor, is_module
from t2j_lsp.translate.rule.library import class_of
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.heads import header_end
from t2j_lsp.translate.statements.module_statements import is_super_init

MODULE = "torch.nn.Module"
MODULE_METHODS = frozenset(
    ("train", "eval", "apply", "zero_grad", "requires_grad_", "to", "cuda", "cpu", "double", "half")
)
INDEXING, ELEMENTS, IN_PLACE = "indexing", "assignment to elements", "operator that writes in place"


@dataclass(frozen=True)
class Place:
    """A node with its name, and the statement around it."""

    span: Span
    name: str
    statement: ast.stmt
    range: tuple[int, int]
    """The part of the source whose output tells what became of it."""
    head: tuple[int, int]
    """The part that is gone from the output where the place is."""


def places(ctx: Context) -> Iterator[Place]:
    """Every place of a source."""
    for node in ctx.source.nodes:
        if isinstance(node, ast.expr | ast.Assign | ast.AugAssign) and node.lineno:
            name = _name(ctx, node)
            place = _place(ctx, node, name) if name is not None else None
            if place is not None:
                yield place


def rewrites(context: Context, renderer: Renderer) -> tuple[Rewrite, ...]:
    """The torch expressions of the source and their JAX text, in order of place, the outer one first."""
    found: list[Rewrite] = []
    for node, piece in renderer.rendered.items():
        name = _rewritten_name(context, node) if getattr(node, "lineno", 0) else None
        if name is None:
            continue
        start, end = context.source.span(node)
        changed = piece.text if piece.text != context.source.text[start:end] else None
        if changed is not None or isinstance(node, ast.Call):
            last = node in context.plan.layout.natural or node in context.plan.layout.wanted
            found.append(Rewrite(context.source.contract_span(node), name, changed, last))
    return tuple(sorted(found, key=lambda r: (r.span.line, r.span.column, -r.span.end_line, -r.span.end_column)))


def _rewritten_name(context: Context, node: ast.expr) -> str | None:
    """``torch.cat`` for a call of it, ``torch.Tensor.view`` for a method of a tensor; None for what is not torch's."""
    target = node.func if isinstance(node, ast.Call) else node
    fact = context.fact(target)
    if isinstance(fact, Qual):
        return fact.name if is_torch(fact.name) else None
    if isinstance(target, ast.Attribute) and isinstance(context.fact(target.value), Tensor):
        return f"torch.Tensor.{target.attr}"
    return None


def _name(ctx: Context, node: ast.expr | ast.stmt) -> str | None:
    """What a place is called: a torch name or a word; None for a node that is no place."""
    match node:
        case ast.Call():
            return _call_name(ctx, node)
        case ast.Attribute() | ast.Name():
            parent = ctx.source.parents.get(node)
            if isinstance(parent, ast.Attribute) or isinstance(parent, ast.Call) and parent.func is node:
                return None
            return _torch_name(ctx, node)
        case ast.Subscript(ctx=ast.Load()) if isinstance(ctx.fact(node.value), Tensor):
            return INDEXING
        case ast.Assign() if any(_writes_elements(ctx, t) for t in node.targets):
            return ELEMENTS
        case ast.AugAssign() if isinstance(ctx.fact(node.target), Tensor) or _writes_elements(ctx, node.target):
            return IN_PLACE
    return None


def _writes_elements(ctx: Context, target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(ctx.fact(target.value), Tensor)


def _torch_name(ctx: Context, node: ast.expr) -> str | None:
    fact = ctx.fact(node)
    return fact.name if isinstance(fact, Qual) and is_torch(fact.name) else None


def _call_name(ctx: Context, node: ast.Call) -> str | None:
    func = node.func
    if not isinstance(func, ast.Attribute):
        return _torch_name(ctx, func)
    if func.attr == "backward" and differentiates(ctx, node):
        return "torch.Tensor.backward"
    owner = ctx.fact(func.value)
    if isinstance(owner, Object) and (known := class_of(owner.kind)) is not None:
        return f"{known}.{func.attr}"
    if isinstance(owner, Tensor):
        return f"torch.Tensor.{func.attr}"
    if is_module(owner) and func.attr in MODULE_METHODS:
        return f"{MODULE}.{func.attr}"
    if func.attr == "__init__" and is_super_init(node) and _in_module(ctx, node):
        return f"{MODULE}.__init__"
    return _torch_name(ctx, func)


def _in_module(ctx: Context, node: ast.AST) -> bool:
    while (parent := ctx.source.parents.get(node)) is not None:
        if isinstance(parent, ast.ClassDef):
            info = ctx.inference.classes.get(parent)
            return info is not None and info.is_module
        node = parent
    return False


def _place(ctx: Context, node: ast.expr | ast.stmt, name: str) -> Place | None:
    """The place of a node; None in parts of a statement that stand between its blocks."""
    child: ast.AST = node
    owner: ast.AST = node
    while not isinstance(owner, ast.stmt):
        child, owner = owner, ctx.source.parents[owner]
        if isinstance(owner, ast.excepthandler | ast.match_case):
            return None
    span = ctx.source.contract_span(node)
    decorators: list[ast.expr] = getattr(owner, "decorator_list", [])
    first = min([owner.lineno, *(d.lineno for d in decorators)])
    if not hasattr(owner, "body"):
        part = _simple(ctx, owner)
        return Place(span, name, owner, part, part)
    head = _from_lines(ctx, first, header_end(owner))
    if child in decorators:
        at = ctx.source.concrete.decorators[ctx.source.span(child)[0]]
        line = ctx.source.line_of(at)
        span = Span(line, at - ctx.source.starts[line - 1], span.end_line, span.end_column)
        return Place(span, name, owner, head, _from_lines(ctx, line, span.end_line))
    if isinstance(owner, ast.With | ast.AsyncWith):
        return Place(span, name, owner, _from_lines(ctx, first, owner.end_lineno or first), head)
    return Place(span, name, owner, head, head)


def _simple(ctx: Context, node: ast.stmt) -> tuple[int, int]:
    """A statement with the rest of its lines, where it has these for itself."""
    start, end = ctx.source.span(node)
    last = node.end_lineno or node.lineno
    whole = _from_lines(ctx, node.lineno, last)
    rest = ctx.source.text[end : whole[1]].lstrip()
    return whole if ctx.source.starts_line(node) and (not rest or rest.startswith("#")) else (start, end)


def _from_lines(ctx: Context, first: int, last: int) -> tuple[int, int]:
    return ctx.source.starts[first - 1], ctx.source.starts[last - 1] + len(ctx.source.line_text(last))
