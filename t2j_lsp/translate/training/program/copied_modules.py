"""Lists of copies of a module that is given: ``nn.ModuleList([copy.deepcopy(module) for _ in range(N)])``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer, Qual

_COPY = Qual("copy.deepcopy")
Sources = Callable[[ast.expr], Iterable[ast.expr | None]]
"""The values that a variable may have, of a parameter those of all calls; None for what can't be followed."""


class CopiedModules:
    """Follows what is copied to the calls of a file that give it."""

    def __init__(self, context: Context, sources: Sources) -> None:
        self.ctx = context
        self.sources = sources

    def copied(self, layer: Layer) -> list[Fact] | None:
        """What modules a list may be copies of; None where that can't be told."""
        match layer.node:
            case ast.Call(args=[ast.ListComp(elt=ast.Call(args=[module]) as copy)]) if self._copies(copy):
                return self._facts(module, set())
        return None

    def _copies(self, call: ast.Call) -> bool:
        return self.ctx.fact(call.func) == _COPY and len(call.args) == 1 and not call.keywords

    def _facts(self, node: ast.expr, seen: set[ast.expr]) -> list[Fact] | None:
        fact = self.ctx.fact(node)
        if not isinstance(fact, AnyModule) or fact.wrapped is not None:
            return [fact]
        if isinstance(node, ast.Call):
            return self._facts(node.args[0], seen) if self._copies(node) else None
        out: list[Fact] = []
        for value in self.sources(node):
            if value is None or value in seen:
                return None
            seen.add(value)
            facts = self._facts(value, seen)
            if facts is None:
                return None
            out += facts
        return out or None
