"""What single statements read, bind and call, and the statements inside others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.text import Source

from .storage import ADDING

_METADATA = names_with(Trait.ABOUT)
_ASKED_ABOUT = frozenset({"len", "isinstance", "type", "id", "hasattr"})


def flatten(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements in source order, without those of nested functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for block in symbols.own_blocks(node):
            yield from flatten(block)


def header(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a compound statement itself."""
    for _, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr | ast.withitem):
                yield child


def _own_parts(node: ast.stmt) -> list[ast.AST]:
    """A statement, or the expressions of a compound one, without the statements inside it."""
    return list(header(node)) if hasattr(node, "body") or isinstance(node, ast.Match) else [node]


def calls_of(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement, without those of statements inside it."""
    for part in _own_parts(node):
        yield from (n for n in symbols.walk(part) if isinstance(n, ast.Call))


def loads(node: ast.AST, name: str) -> bool:
    """Whether the values of a name are read: not its shape, or how many items it has."""
    about = {n.value for n in symbols.walk(node) if isinstance(n, ast.Attribute) and n.attr in _METADATA}
    for call in symbols.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _ASKED_ABOUT:
            about |= set(call.args)
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n not in about
        for n in symbols.walk(node)
    )


def parts_of(node: ast.stmt) -> list[ast.AST]:
    """What of a statement is no statement of its own, but for additions to a list."""
    if any(True for _ in appended(node)):
        return []
    return _own_parts(node)


def appended(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """The list and the name in ``outputs.append(x)``."""
    match node:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr=attr), args=[*_, ast.Name(id=name)])
        ) if attr in ADDING:
            yield holder, name


def stored(node: ast.stmt) -> frozenset[str]:
    """The names that a statement binds, without those of statements inside it."""
    return symbols.bound_names(_own_parts(node))


def targets_of(node: ast.stmt) -> Iterator[ast.expr]:
    """The targets of an assignment, one by one where it has several values."""
    waiting = list(node.targets) if isinstance(node, ast.Assign) else []
    while waiting:
        target = waiting.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            waiting = [*target.elts, *waiting]
        else:
            yield target


def statements_after(node: ast.stmt, function: ast.AST, source: Source) -> Iterator[ast.stmt]:
    """The statements that may run after one: not those of other branches, but those of a loop around it again."""
    place: ast.AST = node
    while place is not function and isinstance(place, ast.stmt | ast.match_case | ast.ExceptHandler):
        block = (source.block_of(place) or []) if isinstance(place, ast.stmt) else []
        for later in block[block.index(place) + 1 :] if place in block else []:
            yield from flatten([later])
            if isinstance(later, ast.Return | ast.Raise):
                return
        parent = source.parents.get(place)
        if isinstance(parent, ast.Try | ast.TryStar):
            yield from flatten(_behind_in_try(parent, place))
        if isinstance(parent, ast.For | ast.AsyncFor | ast.While):
            yield from flatten(parent.body)
            if isinstance(parent, ast.While):
                yield parent
        place = parent if parent is not None else function


def _behind_in_try(around: ast.Try | ast.TryStar, place: ast.AST) -> list[ast.stmt]:
    """The statements of other blocks of a ``try`` that may run behind what stands in one."""
    handlers = [statement for handler in around.handlers for statement in handler.body]
    if place in around.body:
        return [*handlers, *around.orelse, *around.finalbody]
    return [] if place in around.finalbody else around.finalbody


def repeated(node: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """What the loops of a function around a statement run again: what stands in front of it runs after it, too."""
    for place in ancestors(node, parents):
        if isinstance(place, FunctionNode):
            return
        if isinstance(place, ast.For | ast.While):
            yield from place.body
        if isinstance(place, ast.While):
            yield place.test


def only_written(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a name is read to write into what it holds."""
    place, parent = node, parents.get(node)
    while isinstance(parent, ast.Subscript | ast.Attribute) and parent.value is place:
        if isinstance(parent.ctx, ast.Store):
            return True
        place, parent = parent, parents.get(parent)
    return False


def gives_keys(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop looks things up by its variable in what it goes over, as in a dict: ``for k in d: d[k]``."""
    match loop:
        case ast.For(target=ast.Name(id=key), iter=ast.Name(id=walked)):
            names = (n.slice for n in symbols.walk(loop) if isinstance(n, ast.Subscript) and _is_named(n.value, walked))
            return any(_is_named(name, key) for name in names)
    return False


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
