"""Bare tensors that an object of the program's own holds with their optimizer: ``Adam([self.log_alpha])``.

The step is given tensor and state, and the method that makes it writes both back into the object.
"""

from __future__ import annotations

import ast
import re

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.source.positions import are_alternatives
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .leaf_values import LeafValues
from .other_names import OtherNames

KEPT = "It updates {name}, which has another name too: in JAX that keeps the array from before."
ELSEWHERE = "It updates {name}, which is bound in another function: pass it and return it."
AGAIN = "It updates {name}, which is more than one tensor: each has an optimizer of its own."
NO_FLAG = "It updates {name}, of which the file doesn't say that it takes gradients: PyTorch leaves it as it is then."
OTHERWISE = "It updates bare tensors, and is used for more than zero_grad() and step()."
_ENDING = re.compile(r"(opt|optim|optimi[sz]er)$")


class HeldTensors:
    """Looks at what the program does with such attributes."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.other_names = OtherNames(context, objects)

    def leaves(self, call: ast.Call, parameters: ast.expr, optimizer: ast.Attribute) -> tuple[tuple[str, ...], str]:
        """The attributes that an optimizer updates, which a constructor makes with it; else none, and why."""
        scope = self.objects.scope(call)
        owner = self.objects.owner(scope)
        names = self._names(parameters)
        if owner is None or owner.is_module or not is_of_self(optimizer) or not names:
            return (), ""
        if scope.function is None or scope.function.owner is not owner or scope.function.name != "__init__":
            return (), ELSEWHERE.format(name=names[0])
        own = set(symbols.walk(call))
        for attribute in (*names, f"self.{optimizer.attr}"):
            places = [n for n in self._places(attribute.removeprefix("self."), owner) if n not in own]
            parents = self.ctx.source.parents
            places = [n for n in places if isinstance(n.ctx, ast.Load) or not are_alternatives(n, call, parents)]
            stored = [n for n in places if not isinstance(n.ctx, ast.Load)]
            if len(stored) != 1 or not self._stands_in(stored[0], scope):
                return (), AGAIN.format(name=attribute)
            if attribute not in names:
                return (
                    ((), OTHERWISE) if not all(n in stored or self._is_step(n) for n in places) else (tuple(names), "")
                )
            if reason := self._unsure(attribute, call, [n for n in places if n not in stored]):
                return (), reason.format(name=attribute)
        return tuple(names), ""

    def _unsure(self, name: str, call: ast.Call, reads: list[ast.Attribute]) -> str:
        """Why one of them can't be updated so."""
        values = LeafValues(self.ctx, self.objects, self.objects.scope(call), call)
        if any(map(self.other_names.keeps, reads)) or values.share(name):
            return KEPT
        return "" if values.take_gradients(name) else NO_FLAG

    def state(self, optimizer: ast.Attribute) -> str:
        """What the object calls the state of optax: ``self.alpha_opt_state``."""
        return f"self.{self.ctx.names.fresh(_ENDING.sub('', optimizer.attr) + 'opt_state')}"

    def _names(self, node: ast.expr) -> list[str]:
        """The attributes in a list of tensors that is written out."""
        elements = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        names = [ast.unparse(e) for e in elements if is_of_self(e) and self._is_plain(e)]
        return names if len(names) == len(elements) == len(set(names)) else []

    def _is_plain(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, Tensor) and not fact.variable

    def _places(self, name: str, owner: ClassInfo) -> list[ast.Attribute]:
        """Where an attribute of this name may be one of an object of a class."""
        places = (n for n in self.ctx.source.nodes if isinstance(n, ast.Attribute) and n.attr == name)
        return [n for n in places if not self._is_another(n, owner)]

    def _is_another(self, node: ast.Attribute, owner: ClassInfo) -> bool:
        """Whether an attribute is surely one of an object of another class."""
        if is_of_self(node):
            around = self.objects.owner(self.objects.scope(node))
            return around is not None and owner not in around.ancestry() and around not in owner.ancestry()
        other = self.ctx.fact(node.value)
        if not isinstance(other, Instance):
            return is_module(other)
        return owner not in other.cls.info.ancestry() and other.cls.info not in owner.ancestry()

    def _stands_in(self, node: ast.AST, scope: VariableScope) -> bool:
        """Whether a constructor gives an attribute its value, outside of loops."""
        around = ancestors(node, self.ctx.source.parents)
        return self.objects.scope(node) == scope and not any(isinstance(at, ast.For | ast.While) for at in around)

    def _is_step(self, node: ast.expr) -> bool:
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in ("zero_grad", "step")


def is_of_self(node: ast.expr) -> bool:
    """Whether it is ``self.x``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
