"""Imports of the source that bind what an output needs in front of them: of ``jax`` half way, or in a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.needs import IMPORTS
from t2j_lsp.translate.source.text import Source

from .helper_place import WrittenCode


def late_imports(source: Source, output: WrittenCode | None) -> dict[str, ast.stmt]:
    """Imports of the source behind its head that the output needs in front of them, by the name they bind.

    A script that imports numpy half way may have ``tensor.numpy()`` before. An import may stand under a condition.
    """
    late: dict[str, ast.stmt] = {}
    for node in _statements([s for s in source.tree.body if s not in source.preamble]) if output is not None else ():
        match node:
            case ast.Import(names=[alias]) if _line(alias) in (line for line, _ in IMPORTS.values()):
                late.setdefault(symbols.bound_as(alias), node)
    if not late or output is None:
        return {}
    reads = [n for n in symbols.walk(output.tree) if isinstance(n, ast.Name) and n.id in late]
    first = {n.id: n.lineno for n in sorted(reads, key=lambda n: n.lineno, reverse=True)}
    lines = {symbols.bound_as(a): n.lineno for n in output.tree.body if isinstance(n, ast.Import) for a in n.names}
    return {
        name: node
        for name, node in late.items()
        if node not in source.tree.body or first.get(name, lines.get(name, 0)) < lines.get(name, 0)
    }


def imports_in_functions(source: Source, line: str, name: str) -> Iterator[ast.Import]:
    """Imports like one of the output's that stand in functions, which read the name in front of them, or perhaps do.

    One at the head of its function is in front of all.
    """
    if name not in source.words:
        return
    for function in (n for n in source.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)):
        if name not in source.symbols.bound(function):
            continue
        head = next((i for i, s in enumerate(function.body) if not _is_head(s)), len(function.body))
        for node in _statements(function.body[head:]):
            match node:
                case ast.Import(names=[alias]) if _line(alias) == line:
                    yield node


def _is_head(statement: ast.stmt) -> bool:
    """Whether a statement is an import or a text."""
    text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return text or isinstance(statement, ast.Import | ast.ImportFrom)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, and those inside their blocks, without those of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [s for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt)]
            handled = [s for h in getattr(node, "handlers", ()) for s in h.body]
            yield from _statements([*inner, *handled])


def _line(alias: ast.alias) -> str:
    return f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
