"""Which code of a file runs once in a run of it: what stands in no loop, and in no function that is called again."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo

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

    def _named(self, info: FunctionInfo) -> list[ast.expr]:
        """Where a function is named; a constructor by its class, but for annotations."""
        owner = info.owner if info.name == "__init__" else None
        name = owner.name if owner is not None else info.name
        nodes = [*self.source.names.get(name, ()), *self.source.attributes.get(name, ())]
        return [node for node in nodes if owner is None or not self._annotates(node)]

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
