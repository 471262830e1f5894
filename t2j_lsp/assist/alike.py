"""Whether two programs are the same but for names, layout and a few statements: what is to be kept apart, then."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from pathlib import PurePath

from t2j_lsp.fixes.record import Example

SHARED = 0.6
"""Of an example's statements that a program has where it is the same program, or holds it."""
_COMMON = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Pass)
"""Statements that are alike in most programs."""


def same_program(path: PurePath, source: str, examples: Sequence[Example]) -> frozenset[str]:
    """The programs of a data set that a file is or holds, by its name or by their statements."""
    named = path.stem.replace("-", "_")
    return frozenset(
        example.program
        for example in examples
        if example.program.replace("-", "_") == named or holds(source, example.input_code)
    )


def holds(source: str, other: str) -> bool:
    """Whether a program has most of the statements of another, names and layout aside."""
    own = _pieces(other)
    return source == other or (bool(own) and len(own & _pieces(source)) >= SHARED * len(own))


@functools.cache
def _pieces(source: str) -> frozenset[str]:
    """A program's statements, with the names that it gives its own things taken away."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    pieces = set()
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt) and not isinstance(statement, _COMMON) and not _starts_base(statement):
            pieces.add(ast.dump(_Anonymous(own).visit(_head(statement))))
    return frozenset(pieces)


def _starts_base(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("super(")


def _head(statement: ast.stmt) -> ast.stmt:
    """A copy of a statement; of one with a body, what stands before it."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    for field in ("body", "orelse", "finalbody", "handlers"):
        if isinstance(getattr(copy, field, None), list):
            setattr(copy, field, [])
    return copy


class _Anonymous(ast.NodeTransformer):
    """Takes the program's own names away."""

    def __init__(self, own: set[str]) -> None:
        self.own = own

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("_" if node.id in self.own else node.id, ast.Load())

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg("_")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = "_"
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = "_"
        return self.generic_visit(node)
