"""The classes and functions of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.translate.rule.facts import ClassInfo, FunctionInfo

from .imports import Imports
from .state import Env, Infer, State


class Declarations:
    """Classes and functions, before any body is read."""

    def __init__(self, state: State, infer: Infer, imports: Imports) -> None:
        self.state = state
        self.infer = infer
        self.imports = imports

    def declare(self, body: Iterable[ast.stmt]) -> None:
        """Bind imports, classes and functions of the module level before any body is read."""
        for node in body:
            match node:
                case ast.Import() | ast.ImportFrom():
                    self.imports.bind(node, self.state.env)
                case ast.ClassDef():
                    self.declare_class(node, self.state.env)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.state.env[node.name] = self.declare_function(node, None, None).fact
                case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                    for field in ("body", "orelse", "finalbody"):
                        self.declare(getattr(node, field, []))
                    for handler in getattr(node, "handlers", []):
                        self.declare(handler.body)

    def declare_class(self, node: ast.ClassDef, env: Env) -> ClassInfo:
        if node in self.state.classes:
            return self.state.classes[node]
        info = ClassInfo(node.name, node, tuple(self.infer.expr(base, env) for base in node.bases))
        self.state.classes[node] = info
        env[node.name] = info.fact
        if info.is_module:
            for ancestor in info.ancestry()[1:]:
                ancestor.mixed_in = not ancestor.is_module
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                info.methods[item.name] = self.declare_function(item, info, None)
                for decorator in item.decorator_list:
                    self.infer.expr(decorator, env)
        return info

    def declare_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None, outer: FunctionInfo | None
    ) -> FunctionInfo:
        if node not in self.state.functions:
            self.state.functions[node] = FunctionInfo(node.name, node, owner, outer)
        return self.state.functions[node]
