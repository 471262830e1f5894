"""Rewrites a program so that every statement reports its value: for finding the first statement where two part.

``x = f(y)`` becomes ``x = __t2j__(7, f(y))``, where 7 is the statement's number in a table of sites; what has no value
of its own (``x += y``, ``x[0] = y``, ``x.add_(y)``) is followed by a report of ``x``.
"""

from __future__ import annotations

import ast
import re
from typing import Any, cast

from t2j_lsp.check.messages import StatementSite

NAME = "__t2j__"
MAX_EVENTS = 4000
MAX_BYTES = 400 * 1024**2
GRADIENT_SECONDS = 20.0
"""Spent at most on the gradients of single statements."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Tracer:
    """The transformation, as `loading.loaded` takes it, and the sites it made."""

    def __init__(self) -> None:
        self.sites: list[StatementSite] = []
        self.modules: dict[tuple[str, int, str, str], int] = {}

    def module(self, file: str, line: int, name: str, target: str, kind: str = "") -> int:
        """The site of the input (``in``) or output (``out``) of a submodule that is called from a line.

        ``kind`` says what of its class matters: ``channels last``.
        """
        key = (file, line, name, target)
        if key not in self.modules:
            self.modules[key] = len(self.sites)
            self.sites.append(StatementSite(file, line, f"<{name}>", target, (kind,)))
        return self.modules[key]

    def __call__(self, tree: ast.Module, path: str) -> ast.Module:
        rewriter = _Rewriter(path, self.sites)
        return ast.Module(body=[rewriter.visit(s) for s in tree.body], type_ignores=[])


class _Rewriter(ast.NodeTransformer):
    def __init__(self, path: str, sites: list[StatementSite]) -> None:
        self.path = path
        self.sites = sites
        self.names: list[str] = []
        self.inside = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.names.append(node.name)
        outer, self.inside = self.inside, 0
        node.body = [self.visit(s) for s in node.body]
        self.inside = outer
        self.names.pop()
        return node

    def _visit_function(self, node: _Function) -> ast.AST:
        self.names.append(node.name)
        outer, self.inside = self.inside, 1
        node.body = self._statements(node.body)
        self.inside = outer
        self.names.pop()
        return node

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            rewritten += result if isinstance(result, list) else [result]
        return rewritten

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for part in ("body", "orelse", "finalbody"):
            body = getattr(node, part, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                setattr(node, part, self._statements(body))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner.body = self._statements(inner.body)
        return node

    def _report(self, statement: ast.stmt, target: str, value: ast.expr, head: ast.expr | None = None) -> ast.expr:
        read = head or statement
        reads = {n.id for n in ast.walk(read) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        reads |= {ast.unparse(n) for n in ast.walk(read) if isinstance(n, ast.Attribute)}
        site = StatementSite(self.path, statement.lineno, ".".join(self.names), target, tuple(sorted(reads)))
        self.sites.append(site)
        name = ast.Name(NAME, ast.Load())
        call = ast.Call(name, [ast.Constant(len(self.sites) - 1), value], [])
        return ast.copy_location(call, value)

    def _after(self, statement: ast.stmt, value: ast.expr) -> ast.stmt:
        """A report of a variable that a statement has changed."""
        read = ast.parse(ast.unparse(value), mode="eval").body
        return ast.copy_location(ast.Expr(self._report(statement, ast.unparse(value), read)), statement)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if not self.inside:
            return node
        changed = [_changed(t) for t in node.targets]
        if len(changed) == 1 and changed[0] is not None:
            return [node, self._after(node, changed[0])]
        node.value = self._report(node, ", ".join(ast.unparse(t) for t in node.targets), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if self.inside and node.value is not None:
            node.value = self._report(node, ast.unparse(node.target), node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not self.inside:
            return node
        target = _changed(node.target) or node.target
        return [node, self._after(node, target)]

    def visit_Return(self, node: ast.Return) -> Any:
        if self.inside and node.value is not None:
            node.value = self._report(node, "return", node.value)
        return node

    def visit_If(self, node: ast.If) -> Any:
        node = cast(ast.If, self.generic_visit(node))
        if self.inside:
            node.test = self._report(node, "if", node.test, node.test)
        return node

    def visit_For(self, node: ast.For) -> Any:
        node = cast(ast.For, self.generic_visit(node))
        if self.inside and isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range":
            node.iter = self._report(node, f"for {ast.unparse(node.target)}", node.iter, node.iter)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if self.inside and isinstance(call, ast.Call) and re.match(r"(torch\.)?(nn\.)?init\.", ast.unparse(call.func)):
            return [node, self._after(node, call.args[0])] if call.args else node
        if self.inside and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            name = call.func.attr
            if (
                name.endswith("_")
                and not name.startswith("_")
                and isinstance(call.func.value, ast.Name | ast.Attribute)
            ):
                return [node, self._after(node, call.func.value)]
        return node


def _changed(target: ast.expr) -> ast.expr | None:
    """What ``x[0] = ...`` changes: ``x``. None for a plain assignment; ``x[...] = ...`` assigns to a variable."""
    if not isinstance(target, ast.Subscript):
        return None
    inner: ast.expr = target
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    return inner if isinstance(inner, ast.Name | ast.Attribute) else None
