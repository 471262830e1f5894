"""Expressions that are an int because the same function makes a layer of that size: ``nn.Linear(patch_dim, dim)``."""

from __future__ import annotations

import ast
from collections import Counter

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.rule.facts import INT, UNKNOWN, Fact
from t2j_lsp.translate.source.text import Source

_PARTS = (
    ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.Constant, ast.expr_context, ast.operator
)  # fmt: skip
_CHOICES = (
    ast.If | ast.IfExp | ast.BoolOp | ast.Try | ast.While | ast.Match | ast.ListComp | ast.SetComp | ast.DictComp
    | ast.GeneratorExp | ast.Lambda
)  # fmt: skip


class RepeatedSizes:
    """Arguments of layers by their text, within each function: those that are sizes for sure, and those to find out."""

    def __init__(self, source: Source, facts: dict[ast.AST, Fact]) -> None:
        self.source = source
        self.facts = facts
        self.known: dict[tuple[ast.AST, str], list[ast.AST]] = {}
        self.asked: dict[tuple[ast.AST, str], list[ast.expr]] = {}

    def is_size(self, node: ast.expr) -> None:
        """A layer of this size is made, whenever its function or loop runs."""
        if (key := self._key(node)) is None or (loops := self._loops(node, key[0])) is None:
            return
        self.known.setdefault(key, loops[:1])
        for one in self.asked.get(key, ()):
            self._learn(one, key)

    def may_be_size(self, node: ast.expr) -> None:
        """An argument that may be one int, or a shape."""
        if (key := self._key(node)) is not None:
            self.asked.setdefault(key, []).append(node)
            self._learn(node, key)

    def _learn(self, node: ast.expr, key: tuple[ast.AST, str]) -> None:
        loops = self.known.get(key)
        if loops is not None and all(loop in ancestors(node, self.source.parents) for loop in loops):
            self.facts[node] = INT

    def _key(self, node: ast.expr) -> tuple[ast.AST, str] | None:
        """The function around an expression of variables that keep their values in it, and its text."""
        if self.facts.get(node, UNKNOWN) != UNKNOWN or not all(isinstance(n, _PARTS) for n in symbols.walk(node)):
            return None
        function = next((n for n in ancestors(node, self.source.parents) if isinstance(n, FunctionNode)), None)
        if function is None or isinstance(node, ast.Constant):
            return None
        stored = _stored(function)
        names = {getattr(n, "id", getattr(n, "attr", "")) for n in symbols.walk(node)}
        return (
            (function, ast.dump(node)) if all(stored[name] <= 1 for name in names) and _runs_whole(function) else None
        )

    def _loops(self, node: ast.expr, function: ast.AST) -> list[ast.AST] | None:
        """The loops of a function around an expression, the inner one first; None if a condition is around it too."""
        loops: list[ast.AST] = []
        for around in ancestors(node, self.source.parents):
            if around is function:
                return loops
            if isinstance(around, _CHOICES):
                return None
            if isinstance(around, ast.For):
                loops.append(around)
        return None


def _runs_whole(function: FunctionNode) -> bool:
    """Whether a function has no way past some of its statements but conditions."""
    leaving = [n for n in symbols.walk(function) if isinstance(n, ast.Return | ast.Break | ast.Continue)]
    return all(node is function.body[-1] for node in leaving)


def _stored(function: ast.AST) -> Counter[str]:
    """How often a function gives a variable or an attribute a value, parameters included."""
    stored: Counter[str] = Counter()
    for node in symbols.walk(function):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                stored[name] += 1
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                stored[name] += 1
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                stored[name] += 2
    return stored
