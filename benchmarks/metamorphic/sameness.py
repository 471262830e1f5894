"""Whether two conversions are the same program, but for names that the change renamed.

Compared are the statements that an object depends on, as trees: comments, line breaks, brackets, docstrings and the
annotations of functions don't count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from t2j_lsp.check.program.slice import Slice, Slicer
from t2j_lsp.contract import SourceError


class _Plain(ast.NodeTransformer):
    """Takes out what a program means the same without."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        body = [_assigned(s) for s in _without_docstring(node.body)]
        node.body = body or [ast.Pass()]
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = _without_docstring(node.body) or [ast.Pass()]
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        self.generic_visit(node)
        return node


def _assigned(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.Assign([statement.target], statement.value)
    return statement


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [
        s
        for s in body
        if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str))
    ]


def restored(code: str, renamed: Mapping[str, str]) -> str:
    """The text with the new names turned back. They stand nowhere else: changes choose them so."""
    if not renamed:
        return code
    every = "|".join(sorted(map(re.escape, renamed), key=len, reverse=True))
    return re.sub(rf"\b({every})\b", lambda m: renamed[m[1]], code)


class Conversion:
    """A converted text, and what each of its objects is made of."""

    def __init__(self, path: Path, code: str) -> None:
        self.path = path
        self.code = code
        self._parts: dict[str, list[str] | None] = {}
        try:
            self.slicer: Slicer | None = Slicer(path, code, lambda other: other.read_text(encoding="utf-8"))
        except SourceError:
            self.slicer = None

    def cut(self, name: str) -> Slice | None:
        return self.slicer.cut(name) if self.slicer is not None else None

    @cached_property
    def whole(self) -> str | None:
        """Every statement, in its order; None where the text is no Python."""
        try:
            return ast.dump(_Plain().visit(ast.parse(self.code)))
        except SyntaxError:
            return None

    def parts(self, name: str) -> list[str] | None:
        """The statements that an object depends on, in no order; None where the text is no Python."""
        if name not in self._parts:
            self._parts[name] = self._statements(name)
        return self._parts[name]

    def _statements(self, name: str) -> list[str] | None:
        cut = self.cut(name)
        if cut is None:
            return None
        main = next(m for m in cut.modules if m.name == cut.module)
        body = ast.parse(main.text).body
        imports: list[str] = []
        for index, names in main.keep:
            statement = body[index]
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports += _imports(statement, names)
            else:
                plain = _Plain().visit(ast.Module([statement], []))
                imports.append(ast.dump(plain))
        return sorted(imports)


def _imports(statement: ast.Import | ast.ImportFrom, names: tuple[str, ...] | None) -> list[str]:
    home = f"{'.' * statement.level}{statement.module or ''}." if isinstance(statement, ast.ImportFrom) else ""
    wanted = [a for a in statement.names if names is None or (a.asname or a.name.partition(".")[0]) in names]
    return [f"{home}{a.name} as {a.asname}" for a in wanted]
