"""Attributes that hold a module and then a function: ``self.loss = Own()``, and in a branch ``nn.CrossEntropyLoss()``.

Many of PyTorch's modules are functions in JAX. NNX keeps in mind that an attribute holds data, and jit takes no
function for data: one that comes behind a module is said to be static, and a module behind a function to be data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.rule.definitions import Function, is_module
from t2j_lsp.translate.rule.facts import Layer, Qual
from t2j_lsp.translate.source.positions import are_alternatives


class ReplacedModules:
    """What the values of such attributes are wrapped in."""

    def __init__(self, ctx: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = ctx
        self.renderer = renderer

    def marked(self, node: ast.Assign, target: ast.Attribute) -> str | None:
        """``nnx.static(relu)`` behind a module, and ``nnx.data(Own())`` behind a function; None for others."""
        others = [*self._before(node, target)]
        if not others:
            return None
        is_function = self._is_function(node.value)
        if is_function and any(is_module(self.ctx.fact(v)) and self._is_function(v) is False for v in others):
            kind = "static"
        elif is_function is False and is_module(self.ctx.fact(node.value)) and any(map(self._is_function, others)):
            kind = "data"
        else:
            return None
        return f"{self.renderer.need('nnx')}.{kind}({self.renderer.argument(node.value).text})"

    def _before(self, node: ast.Assign, target: ast.Attribute) -> Iterator[ast.expr]:
        """What the function may have put there before on the same way."""
        function, text, parents = self.ctx.scope.function, ast.unparse(target), self.ctx.source.parents
        for other in symbols.walk(function.node) if function is not None else ():
            if (
                isinstance(other, ast.Assign)
                and other.lineno < node.lineno
                and not are_alternatives(other, node, parents)
            ):
                if any(isinstance(one, ast.Attribute) and ast.unparse(one) == text for one in other.targets):
                    yield other.value

    def _is_function(self, value: ast.expr) -> bool | None:
        """Whether a value is a function in JAX; None where that isn't known."""
        fact = self.ctx.fact(value)
        if isinstance(value, ast.Lambda) or isinstance(fact, Function | Qual):
            return True
        if not isinstance(fact, Layer):
            return False if is_module(fact) else None
        match ast.parse(self.renderer.argument(value).text.strip(), mode="eval").body:
            case ast.Name() | ast.Attribute() | ast.Lambda():
                return True
            case ast.Call(func=func):
                return ast.unparse(func) == "functools.partial"
        return None
