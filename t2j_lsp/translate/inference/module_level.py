"""The statements of a module level by the names that they bind, so that a name can be inferred without the rest."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import copy
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.text import Source


class ModuleLevel:
    """The statements of a file's module level, by the names that they bind, and what is read where.

    All of it is said by the text alone, so that the conversions of one process can share it.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.body = tuple(source.tree.body)
        self._binding: dict[str, list[tuple[ast.stmt, tuple[str, ...]]]] = {}
        self._read: dict[ast.AST, tuple[str, ...]] = {}
        self._tells: dict[ast.AST, bool] = {}

    @cached_property
    def binders(self) -> dict[str, list[ast.stmt]]:
        """The statements of the outermost level in which a name is bound."""
        binders: dict[str, list[ast.stmt]] = {}
        for statement in self.body:
            for name in _bound_by(statement):
                binders.setdefault(name, []).append(statement)
        return binders

    @cached_property
    def stars(self) -> list[ast.ImportFrom]:
        """Imports of everything, the last one first, as that one wins."""
        imports = [n for n in _within(self.body) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]
        return imports[::-1]

    @cached_property
    def imports_torch(self) -> bool:
        """Whether torch is imported at the module level, or what only its objects have is called."""
        for node in _within(self.body):
            match node:
                case ast.Import(names=names) if any(is_torch(alias.name) for alias in names):
                    return True
                case ast.ImportFrom(module=str() as module, level=0) if is_torch(module):
                    return True
        return self.source.computes_with_torch

    def binding(self, name: str) -> list[tuple[ast.stmt, tuple[str, ...]]]:
        """The statements that bind a name, in their order, without what else stands in them; the names they read."""
        if name not in self._binding:
            cuts = (cut for statement in self.binders.get(name, ()) if (cut := _cut(statement, name)) is not None)
            self._binding[name] = [(cut, tuple(names_run_by(cut))) for cut in cuts]
        return self._binding[name]

    def read_by_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
        """The names that a function's signature and body read."""
        if node not in self._read:
            signature = [node.args, node.returns]
            self._read[node] = (*self.source.symbols.within(node), *names_in(signature))
        return self._read[node]

    def read_by_class(self, node: ast.ClassDef) -> tuple[str, ...]:
        """The names that are read when a class is made."""
        if node not in self._read:
            self._read[node] = tuple(names_in(_class_level(node)))
        return self._read[node]

    def tells_of_attributes(self, info: FunctionInfo) -> bool:
        """Whether a method says what its class holds, or runs as its forward pass."""
        if info.node not in self._tells:
            self._tells[info.node] = _tells_of_attributes(info)
        return self._tells[info.node]


_BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.With, ast.For, ast.While, ast.Match)


def _within(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a level, and those in its blocks; not those of functions and classes."""
    for statement in body:
        yield statement
        if isinstance(statement, _BLOCKS):
            for block in symbols.own_blocks(statement):
                yield from _within(block)


def _bound_by(statement: ast.stmt) -> set[str]:
    return {name for one in _within([statement]) for name in _bound_names(one)}


def _bound_names(statement: ast.stmt) -> frozenset[str]:
    """Names that a statement binds, those in its blocks apart."""
    match statement:
        case ast.For(target=target):
            return symbols.bound_names([target])
        case ast.With(items=items):
            return symbols.bound_names(items)
        case ast.If() | ast.Try() | ast.While():
            return frozenset()
        case _:
            return symbols.bound_names([statement])


def _cut(statement: ast.stmt, name: str) -> ast.stmt | None:
    """The statement with only what binds the name; None if nothing does."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        names = [alias for alias in statement.names if symbols.bound_as(alias) == name]
        if not names:
            return None
        kept = copy(statement)
        kept.names = names
        return kept
    if not isinstance(statement, _BLOCKS):
        return statement if name in _bound_names(statement) else None
    if name not in _bound_by(statement):
        return None
    block = copy(statement)
    for field_name in ("body", "orelse", "finalbody"):
        if hasattr(block, field_name):
            setattr(block, field_name, list(_cut_all(getattr(block, field_name), name)))
    for field_name in ("handlers", "cases"):
        if hasattr(block, field_name):
            parts = [copy(part) for part in getattr(block, field_name)]
            for part in parts:
                part.body = list(_cut_all(part.body, name))
            setattr(block, field_name, parts)
    return block


def _cut_all(body: Iterable[ast.stmt], name: str) -> Iterator[ast.stmt]:
    for statement in body:
        # What leaves a block tells which of its names hold behind it.
        cut = statement if isinstance(statement, ast.Raise) else _cut(statement, name)
        if cut is not None:
            yield cut


def names_in(nodes: Iterable[ast.AST | None]) -> Iterator[str]:
    """Names that stand in trees, in strings that may be annotations too."""
    for root in nodes:
        for node in symbols.walk(root) if root is not None else ():
            match node:
                case ast.Name(id=name):
                    yield name
                case ast.Constant(value=str() as text) if text.isidentifier():
                    yield text


def names_run_by(statement: ast.stmt) -> Iterator[str]:
    """Names that are read when a statement of the module level runs: bodies of functions wait until they are called."""
    for one in _within([statement]):
        yield from names_in(_run_at_once(one))


def _run_at_once(statement: ast.stmt) -> list[ast.AST | None]:
    """The parts of a statement that run with it, those in its blocks apart."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*statement.decorator_list]
        case ast.ClassDef():
            methods = [n for n in statement.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            return [*statement.decorator_list, *statement.bases, *(d for m in methods for d in m.decorator_list)]
        case ast.If() | ast.While():
            return [statement.test]
        case ast.For():
            return [statement.iter]
        case ast.With():
            return [item.context_expr for item in statement.items]
        case ast.Try():
            return [handler.type for handler in statement.handlers]
        case _:
            return [statement]


def _tells_of_attributes(info: FunctionInfo) -> bool:
    if info.name in ("__init__", "forward", "__call__"):
        return True
    arguments = symbols.positional_parameters(info.node)
    instance = arguments[0].arg if arguments else ""
    for node in symbols.walk(info.node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == instance:
            if isinstance(node.ctx, ast.Store) or node.attr.startswith(("register_", "add_module", "__setattr__")):
                return True
    return False


def _class_level(node: ast.ClassDef) -> list[ast.AST]:
    """What runs when the class is made."""
    inner = [n for n in node.body if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [*node.bases, *node.decorator_list, *inner]
