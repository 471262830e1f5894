"""Which code of a file runs once in a run of it: what stands in no loop, and in no function that is called again."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import ancestors, with_ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import UNKNOWN

from .objects import DEPTH, Objects

_AGAIN = (ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.Lambda)


class SingleRuns:
    """Follows functions to the one place that calls them."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.source = objects.ctx.source
        self.inference: Inference = objects.ctx.inference

    def runs_once(self, node: ast.AST, depth: int = 0) -> bool:
        """Whether a node is evaluated at most once, as far as this file says."""
        for at in ancestors(node, self.source.parents):
            if isinstance(at, _AGAIN):
                return False
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
                info = self.inference.functions.get(at)
                return info is not None and depth < DEPTH and self.is_called_once(info, depth + 1)
        return True

    def is_called_once(self, info: FunctionInfo, depth: int = 0) -> bool:
        """Whether a function is named at one place of the file, which calls it once."""
        calls = [*self.objects.calls(info)]
        named = len(self._named(info)) == 1 and not info.node.decorator_list
        return len(calls) == 1 and named and self.runs_once(calls[0], depth)

    def all_calls(self, info: FunctionInfo) -> list[ast.Call]:
        """The calls of a function, if the file names it in no other way."""
        calls = [*self.objects.calls(info)]
        return calls if len(self._named(info)) == len(calls) and not info.node.decorator_list else []

    def runs_inside(self, node: ast.AST, depth: int = 0) -> ast.stmt | None:
        """A statement that runs once and in which a node is evaluated whenever it is; None where there may be none.

        The outermost of the module level, or of a function that is called once.
        """
        outer, function = self._outermost(node)
        if function is None or depth > DEPTH:
            return outer if function is None else None
        info = self.inference.functions.get(function)
        if info is None:
            return None
        calls = self.all_calls(info)
        if not calls:
            return None
        if len(calls) == 1 and self.runs_once(calls[0]):
            return outer
        around = {self.runs_inside(call, depth + 1) for call in calls}
        return around.pop() if len(around) == 1 else None

    def _outermost(self, node: ast.AST) -> tuple[ast.stmt | None, ast.FunctionDef | ast.AsyncFunctionDef | None]:
        """The statement around a node in the block of its function, or of the module; and the function."""
        outer = None
        for at in with_ancestors(node, self.source.parents):
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef) and at is not node:
                return outer, at
            outer = at if isinstance(at, ast.stmt) else outer
        return outer, None

    def _named(self, info: FunctionInfo) -> list[ast.expr]:
        """Where a function is named, or something that may be it; a constructor by its class, but for annotations."""
        if info.owner is None:
            return [*self.source.names.get(info.name, ())]
        if info.name != "__init__":
            return [node for node in self.source.attributes.get(info.name, ()) if self._may_be(node, info)]
        name = info.owner.name
        nodes = [*self.source.names.get(name, ()), *self.source.attributes.get(name, ())]
        return [node for node in nodes if not self._annotates(node)]

    def _may_be(self, node: ast.expr, info: FunctionInfo) -> bool:
        fact = self.objects.ctx.fact(node)
        return fact.info is info if isinstance(fact, Function) else fact is UNKNOWN

    def _annotates(self, node: ast.expr) -> bool:
        around: ast.AST | None = node
        while isinstance(around, ast.expr):
            node, around = around, self.source.parents.get(around)
        match around:
            case ast.arg():
                return True
            case ast.AnnAssign(annotation=said) | ast.FunctionDef(returns=said):
                return said is node
        return False
