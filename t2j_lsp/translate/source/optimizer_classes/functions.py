"""The functions that a step calls: those of its file, and those that it imports from others."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.source.text import Source

_SHARED = frozenset({"torch", "math"})
"""Modules that are the same in every file that imports them under their own name."""

Imported = Callable[[str], ast.FunctionDef | None]


def nothing_imported(name: str) -> ast.FunctionDef | None:
    """What a name is where no other file is read."""
    return None


@dataclass
class KnownFunctions:
    """The functions by the names that the step calls them by."""

    own: Mapping[str, ast.FunctionDef]
    imported: Imported = field(default=nothing_imported)

    @classmethod
    def of(cls, source: Source, imported: Imported) -> KnownFunctions:
        """The functions of a file, and of those that it imports."""
        return cls({s.name: s for s in source.tree.body if isinstance(s, ast.FunctionDef)}, imported)

    def get(self, name: str) -> ast.FunctionDef | None:
        """The function of a name; None for others."""
        return self.own.get(name) or self.imported(name)

    def fits(self, name: str) -> bool:
        """Whether the body of a function may stand in the step: it has no other end, and reads nothing of its file."""
        function = self.get(name)
        if function is None or function.args.vararg or function.args.kwarg or function.decorator_list:
            return False
        inside = [n for s in function.body for n in symbols.walk(s)]
        ends = [
            n for n in inside if isinstance(n, ast.Return) and n is not function.body[-1] and not _is_early(n, function)
        ]
        kinds = ast.FunctionDef | ast.ClassDef | ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Lambda
        if ends or name not in self.own and any(isinstance(n, kinds) for n in inside):
            return False
        return name in self.own or free_names(function) <= _SHARED

    def gives_itself(self, node: ast.Call) -> ast.expr | None:
        """The argument that a call gives back, or the number that it holds; None for other calls."""
        if not isinstance(node.func, ast.Name) or len(node.args) != 1 or node.keywords:
            return None
        function = self.get(node.func.id)
        if function is None or len(symbols.named_parameters(function)) != 1:
            return None
        parameter = symbols.named_parameters(function)[0].arg
        statements = [s for s in symbols.walk(function) if isinstance(s, ast.stmt) and s is not function]
        returned = [s.value for s in statements if isinstance(s, ast.Return)]
        others = [s for s in statements if not isinstance(s, ast.Return | ast.If | ast.Pass) and not is_text(s)]
        same = returned and all(v is not None and _is_itself(v, parameter) for v in returned)
        return node.args[0] if same and not others else None


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, or says as little."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_itself(node: ast.expr, name: str) -> bool:
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return _is_itself(body, name) and _is_itself(orelse, name)
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[]):
            return _is_itself(value, name)
    return isinstance(node, ast.Name) and node.id == name


def _is_early(node: ast.Return, function: ast.FunctionDef) -> bool:
    """``if len(params) == 0: return`` at the beginning, or what a function inside gives back."""
    inner = (n for s in function.body if isinstance(s, ast.FunctionDef) for n in symbols.walk(s))
    early = (s.body[0] for s in function.body if isinstance(s, ast.If) and len(s.body) == 1)
    return node in inner or node.value is None and node in early


def free_names(function: ast.FunctionDef) -> set[str]:
    """The names around it that the body of a function reads."""
    names = [n for s in function.body for n in symbols.walk(s) if isinstance(n, ast.Name)]
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | symbols.parameter_names(function)
    return {n.id for n in names} - own - set(dir(builtins))
