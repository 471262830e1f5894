"""Where copied helpers stand: as far down as the file runs without them, so that it begins with the user's code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.contract import SourceMapEntry
from t2j_lsp.symbols import FunctionNode, bound_names
from t2j_lsp.translate.expressions.context import Edits
from t2j_lsp.translate.source.text import Source

_BY_NAME = frozenset({"globals", "eval", "exec"})
"""Functions that reach any name of the module."""


@dataclass(frozen=True)
class WrittenCode:
    """The output so far, without imports and helpers."""

    tree: ast.Module
    source_map: Sequence[SourceMapEntry]

    def source_of(self, statement: ast.stmt, edits: Edits) -> ast.stmt | None:
        """The top-level statement of the source that one of the output was, or the first behind it."""
        ends = {entry.source_line: entry.end_line for entry in reversed(self.source_map)}
        for node in edits.source.tree.body:
            if node not in edits.deleted and ends.get(node.lineno, 0) >= statement.lineno:
                return node
        return None


def rebound(source: Source, output: ast.Module, loads: Callable[[ast.AST], Iterable[str]]) -> set[str]:
    """Imported names that the module gives another value before anything reads them: ``f = torch.compile(f)``."""
    imported = {
        symbols.bound_as(a) for node in source.tree.body if isinstance(node, ast.ImportFrom) for a in node.names
    }
    assigned = [
        (at, statement.targets[0].id)
        for at, statement in enumerate(output.body)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    ]
    return {
        name
        for at, name in assigned
        if name in imported and not any(name in loads(before) for before in output.body[: at + 1])
    }


def first_user(output: ast.Module, helpers: Set[str]) -> ast.stmt | None:
    """The first statement of a module that may run a helper; None where none does before the module is loaded."""
    reaching = _reaching(output, helpers)
    hooked = {s.name for s in output.body if isinstance(s, ast.ClassDef) and _is_hooked(s)}
    for statement in output.body:
        needed = set(_run(statement))
        bases = set(_bases(statement))
        if needed & reaching or bases & (helpers | reaching & hooked):
            return statement
    return None


def _reaching(output: ast.Module, helpers: Set[str]) -> set[str]:
    """The helpers, and the names of the module whose statements name one of these."""
    names = [(_bound(statement), set(_read(statement)), _handed(statement)) for statement in output.body]
    known = {name for bound, _, _ in names for name in bound}
    heirs = [(heir, base) for heir, base in _derived(output) if base in known]
    reaching, keeping, takers = {*helpers, *_BY_NAME}, set[str](), set[str]()
    while True:
        own = reaching - keeping  # what a registry's decorator itself does is to keep
        more = {n for bound, read, _ in names for n in bound if read & (own if n in takers else reaching)}
        more |= {base for heir, base in heirs if heir in reaching}
        takers |= {name for bound, _, handed in names if bound & reaching for name in handed}
        keeping |= {name for bound, read, _ in names if bound & takers for name in read & known} - own
        if more | keeping <= reaching:
            return reaching
        reaching |= more | keeping


def _derived(output: ast.Module) -> Iterator[tuple[str, str]]:
    """Classes by whose bases they can be got: these keep them, or are asked for their ``__subclasses__``."""
    asked = any(isinstance(n, ast.Attribute) and n.attr == "__subclasses__" for n in symbols.walk(output))
    classes = [s for s in output.body if isinstance(s, ast.ClassDef)]
    keeping = {s.name for s in classes if asked or any(getattr(m, "name", "") == "__init_subclass__" for m in s.body)}
    yield from ((s.name, base) for s in classes for base in _bases(s) if base in keeping)


def _handed(statement: ast.stmt) -> set[str]:
    """What is handed a function or class as it is defined, and may keep it in what it names: a registry's decorator."""
    if not isinstance(statement, FunctionNode | ast.ClassDef):
        return set()
    return {name for decorator in statement.decorator_list for name in _read(decorator)} | set(_bases(statement))


def _run(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement reads when it is run, without what functions do when they are called."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [d for d in (*statement.args.defaults, *statement.args.kw_defaults) if d is not None]
            notes = [a.annotation for a in symbols.all_parameters(statement) if a.annotation]
            for part in (*statement.decorator_list, *defaults, *notes, statement.returns):
                yield from _read(part) if part is not None else ()
        case ast.ClassDef():
            for part in (*statement.decorator_list, *(k.value for k in statement.keywords)):
                yield from _read(part)
            for inner in statement.body:
                yield from _run(inner)
        case _:
            yield from _read(statement)


def _bases(statement: ast.stmt) -> Iterator[str]:
    """The names that a class derives from, and those that the classes in its body do."""
    if isinstance(statement, ast.ClassDef):
        for base in statement.bases:
            yield from _read(base)
        for inner in statement.body:
            yield from _bases(inner)


def _is_hooked(node: ast.ClassDef) -> bool:
    """Whether a class runs something when another one derives from it."""
    return bool(node.keywords) or any(getattr(s, "name", "") == "__init_subclass__" for s in node.body)


def _read(node: ast.AST) -> Iterator[str]:
    return (n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _bound(statement: ast.stmt) -> frozenset[str]:
    """What a statement binds, but for what it imports."""
    return bound_names([statement]) if not isinstance(statement, ast.Import | ast.ImportFrom) else frozenset()
