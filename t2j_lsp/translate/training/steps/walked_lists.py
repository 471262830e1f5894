"""Lists of tensors that a loop updates by their gradients: ``for p in params: p -= lr * p.grad``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import ListOf, Tensor, Tuple
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.training.optimizers.leaf_values import LeafValues
from t2j_lsp.translate.training.optimizers.other_names import OtherNames
from t2j_lsp.translate.training.program.gradient_forms import is_flag
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import Refused
from t2j_lsp.translate.training.program.update_functions import has_other_name

from .accumulated import STORED

HELD = "Something else holds {}, too, and would not see its new values."


class WalkedLists:
    """Reads such lists in one scope."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.values = LeafValues(context, objects, scope)

    def ask_gradients(self, name: str) -> bool:
        """Whether a tensor is made with ``requires_grad``, or gets it, itself or as an element of a list."""
        for node in self.ctx.source.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    if any(is_flag(n) for n in symbols.walk(value)):
                        return True
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=target), attr="requires_grad")]):
                    if target == name or self._iterates(node, target, name):
                        return True
                case ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="requires_grad_")):
                    if target == name or self._iterates(node, target, name):
                        return True
        return False

    def _iterates(self, node: ast.AST, target: str, name: str) -> bool:
        """Whether a statement stands in a loop whose variable is an element of a list with the tensor."""
        while (parent := self.ctx.source.parents.get(node)) is not None:
            node = parent
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == target:
                return name in (self.names(node.iter) or ())
        return False

    def names(self, node: ast.expr) -> list[str] | None:
        """The names in a list that is written out, at the place or where its only name gets it; or that of the list."""
        names = self._written_names(node)
        return [node.id] if names is None and isinstance(node, ast.Name) and self._holds_tensors(node) else names

    def _holds_tensors(self, node: ast.Name) -> bool:
        """Whether a variable holds a list of tensors that were made for it."""
        fact = self.ctx.fact(node)
        items = fact.items if isinstance(fact, Tuple) else [fact.item] if isinstance(fact, ListOf) else []
        plain = isinstance(fact, ListOf | Tuple) and is_array_tree(fact) and all(isinstance(i, Tensor) for i in items)
        return plain and self.values.hold_own(node.id)

    def _written_names(self, node: ast.expr) -> list[str] | None:
        if isinstance(node, ast.Name):
            values = self.objects.assigned(node.id, self.objects.home(node.id, self.scope))
            if len(values) != 1 or values[0] is None:
                return None
            node = values[0]
        if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
            return None
        names = [e.id for e in node.elts if isinstance(e, ast.Name)]
        return names if len(names) == len(node.elts) == len(set(names)) else None

    def elements(self, node: ast.expr) -> list[str]:
        """The tensors of a list, all of which have gradients. Raises Refused."""
        names = self.names(node)
        listed = node if isinstance(node, ast.Name) and names == [node.id] else None
        asked = self.ask_gradients if listed is None else self.values.take_gradients
        if names is None or not all(map(asked, names)):
            raise Refused(STORED)
        local = self.ctx.source.symbols.bound(self.scope.function.node) if self.scope.function is not None else None
        if local is not None and not local >= set(names):
            raise Refused(STORED)
        function = self.scope.function.node if self.scope.function is not None else None
        if listed is not None and any(map(OtherNames(self.ctx, self.objects).keeps, self._reads(listed))):
            raise Refused(HELD.format(names[0]))
        if held := next((name for name in names if has_other_name(self.ctx.source, function, name, node)), None):
            raise Refused(HELD.format(held))
        return names

    def _reads(self, listed: ast.Name) -> Iterator[ast.Name]:
        """Where a list is read."""
        named = self.objects.named(listed.id, self.objects.home(listed.id, self.scope))
        return (node for node in named if isinstance(node.ctx, ast.Load))
