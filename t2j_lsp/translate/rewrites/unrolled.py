"""Loops over optimizers that are written out, ``for opt in optimizers: opt.step()``, as a line for each of them.

A train step names what it updates, so such a loop has no form of its own. Where a file has one, it is read as if it
were unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

_FILLS = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "popitem"})
_MOST = 8
"""Of longer lists nobody writes out each."""


def with_loops_over_optimizers_unrolled(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such loops are unrolled; None if there are none, or everything converts."""
    source = inference.source
    if not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.For) and (items := _items(inference, node)) is not None:
            start, end = source.span(node)
            indent = source.indent(node.lineno)
            lines = [_named(inference, statement, node, item) for item in items for statement in node.body]
            edits.append((start, end, [Fragment(f"{source.newline}{indent}".join(lines), start, end)]))
    return RearrangedText.of(source.text, edits)


def _items(inference: Inference, node: ast.For) -> list[str] | None:
    """What a loop over optimizers gives its variable, one after the other; None for other loops."""
    source = inference.source
    if not isinstance(node.target, ast.Name) or node.orelse or not source.starts_line(node):
        return None
    name = node.target.id
    if not all(_is_call_of(inference, statement, name) for statement in node.body):
        return None
    inside = set(symbols.walk(node))
    scope = next(iter(scopes_around(node, source.parents)), source.tree)
    if any(isinstance(n, ast.Name) and n.id == name and n not in inside for n in _read_in(scope)):
        return None
    items = _written_out(inference, node.iter)
    return items if items is not None and len(items) <= _MOST else None


def _read_in(scope: ast.AST) -> Iterator[ast.Name]:
    """The names that a scope reads outside of loops that bind them anew."""
    loops = [n for n in symbols.walk(scope) if isinstance(n, ast.For | ast.comprehension)]
    bound = {
        inner
        for loop in loops
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name)
        for inner in symbols.walk(loop)
        if isinstance(inner, ast.Name) and inner.id == loop.target.id
    }
    for inner in symbols.walk(scope):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner not in bound:
            yield inner


def _is_call_of(inference: Inference, statement: ast.stmt, name: str) -> bool:
    """Whether a statement on a line of its own calls a method of the loop's optimizer: ``opt.step()``."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner) as held), args=[])):
            fact = inference.fact(held)
            one_line = statement.lineno == statement.end_lineno
            return owner == name and one_line and isinstance(fact, Object) and fact.kind == "optimizer"
    return False


def _written_out(inference: Inference, node: ast.expr) -> list[str] | None:
    """The items of a list, or the values of a dict, that the file writes out once and never changes."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return (
                [ast.unparse(i) for i in items] if all(isinstance(i, ast.Name | ast.Attribute) for i in items) else None
            )
        case ast.Call(func=ast.Attribute(value=held, attr="values"), args=[], keywords=[]):
            match _made(inference, held):
                case ast.Dict(keys=keys) if keys and all(isinstance(k, ast.Constant) for k in keys):
                    text = inference.source.segment(held)
                    return [f"{text}[{inference.source.segment(k)}]" for k in keys if k is not None]
        case ast.Name() | ast.Attribute():
            match _made(inference, node):
                case ast.List(elts=items) | ast.Tuple(elts=items):
                    if items and not any(isinstance(i, ast.Starred) for i in items):
                        return [_item(inference, node, item, at) for at, item in enumerate(items)]
    return None


def _item(inference: Inference, held: ast.expr, item: ast.expr, at: int) -> str:
    """An item by the name that it has, else by its place."""
    named = isinstance(item, ast.Name) and _is_bound_once(inference, item.id)
    return item.id if named and isinstance(item, ast.Name) else f"{inference.source.segment(held)}[{at}]"


def _is_bound_once(inference: Inference, name: str) -> bool:
    bound = [n for n in inference.source.nodes if isinstance(n, ast.Name) and n.id == name]
    return sum(not isinstance(n.ctx, ast.Load) for n in bound) == 1


def _made(inference: Inference, held: ast.expr) -> ast.expr | None:
    """The only value that a variable is given in the file, if nothing is put into it or taken out."""
    text, values = ast.unparse(held), list[ast.expr]()
    for node in inference.source.nodes:
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                if ast.unparse(node) == text:
                    made = inference.source.parents.get(node)
                    if not isinstance(made, ast.Assign) or made.targets != [node]:
                        return None
                    values.append(made.value)
            case ast.arg(arg=name) if name == text:
                return None
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if ast.unparse(value) == text:
                return None
            case ast.Attribute(value=value, attr=attr) if attr in _FILLS and ast.unparse(value) == text:
                return None
    return values[0] if len(values) == 1 else None


def _named(inference: Inference, statement: ast.stmt, loop: ast.For, item: str) -> str:
    """A statement of the loop with an item in place of its variable, which it begins with."""
    assert isinstance(loop.target, ast.Name)
    return item + inference.source.segment(statement).removeprefix(loop.target.id)
