"""Whether what a block computes may carry a gradient, also where code that isn't in sight computes it."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import Class
from t2j_lsp.translate.rule.facts import UNKNOWN, ListOf, ModuleClass, Qual, Tensor, Tuple

from .overwriting import assigned_names


class UnknownPasses:
    """What is known of the values that one block, or function, makes.

    A module that a constructor was given, and a function that is a parameter, are not in sight: what they make of
    arrays (``features = self.backbone(x)``) is taken for arrays.
    """

    def __init__(self, context: Context, block: ast.stmt) -> None:
        self.ctx = context
        self._values: dict[str, list[ast.expr]] = {}
        for node in symbols.walk(block):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                for name in assigned_names(node):
                    self._values.setdefault(name.id, []).append(node.value)

    def carries(self, node: ast.expr) -> bool:
        """Whether a value may carry a gradient."""
        fact = self.ctx.fact(node)
        if fact is not UNKNOWN and not isinstance(fact, Tuple):
            return differentiable(fact)
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return any(map(self.carries, items))
            case ast.Name(id=name):
                return differentiable(fact) or any(map(self._is_pass, self._values.get(name, ())))
            case ast.Attribute(value=owner) | ast.Subscript(value=owner) if fact is UNKNOWN:
                return isinstance(owner, ast.Name | ast.Call) and self.carries(owner)
            case _:
                return differentiable(fact) or self._is_pass(node)

    def _is_pass(self, value: ast.expr) -> bool:
        """``self.net(x)``, or a part of it, of a callable that nothing is known about."""
        while isinstance(value, ast.Attribute | ast.Subscript):
            value = value.value
        if not isinstance(value, ast.Call) or self.ctx.fact(value) is not UNKNOWN:
            return False
        if isinstance(self.ctx.fact(value.func), Qual | Class | ModuleClass):
            return False
        return any(map(self._may_be_array, (*value.args, *(k.value for k in value.keywords))))

    def _may_be_array(self, node: ast.expr) -> bool:
        """A float array; in a module, which is there to be differentiated, also what nothing is known about."""
        node = node.value if isinstance(node, ast.Starred) else node
        fact, function = self.ctx.fact(node), self.ctx.scope.function
        if fact is not UNKNOWN:
            return differentiable(fact)
        is_in_module = function is not None and function.runs_in_module
        return is_in_module and not isinstance(node, ast.Constant | ast.Lambda | ast.JoinedStr | ast.Compare)


def differentiable(fact: object) -> bool:
    """Whether a fact is one of float arrays."""
    if isinstance(fact, Tuple):
        return any(map(differentiable, fact.items))
    if isinstance(fact, ListOf):
        return differentiable(fact.item)
    return isinstance(fact, Tensor) and fact.dtype not in ("int", "bool")
