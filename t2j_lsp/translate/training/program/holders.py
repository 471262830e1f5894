"""Objects that hold modules and optimizers, where code outside of their classes trains what they hold.

``agent.optimizer.step()``, in a function that is given the agent or beside where it is made: what ``agent.net`` and
``agent.optimizer`` are is what the methods of its class give ``self.net`` and ``self.optimizer``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import (
    ClassInfo,
    FunctionInfo,
    Instance,
    holds_modules,
    holds_optimizers,
    is_plain_object,
)


class Holders:
    """Finds them by the names that functions and the module level have for them."""

    def __init__(self, context: Context) -> None:
        self.ctx = context
        self._names: dict[ast.AST | None, str | None] = {}

    def of(self, scope: ast.AST | None) -> str | None:
        """The only name of such an object in a function, or at the module level for None."""
        if scope not in self._names:
            names = {node.id for node in self._nodes(scope) if self._holds(node)}
            names = names or {node.id for node in self._nodes(scope) if self._steps(node)}
            self._names[scope] = names.pop() if len(names) == 1 else None
        return self._names[scope]

    def is_of(self, name: str, scope: ast.AST | None, owner: ClassInfo) -> bool:
        """Whether a name of a scope is that of an object of a class."""
        facts = (self.ctx.fact(node) for node in self._nodes(scope) if node.id == name)
        return any(isinstance(fact, Instance) and owner in fact.cls.info.ancestry() for fact in facts)

    def attributes(self, node: ast.Attribute) -> Iterator[tuple[FunctionInfo, str]]:
        """The methods that may give an attribute of an object its value, with what they call it."""
        fact = self.ctx.fact(node.value)
        if is_plain_object(fact):
            for method in (m for info in fact.cls.info.ancestry() for m in info.methods.values()):
                first = symbols.positional_parameters(method.node)[:1]
                if first and not method.static:
                    yield method, f"{first[0].arg}.{node.attr}"

    def _nodes(self, scope: ast.AST | None) -> Iterator[ast.Name]:
        own = symbols.own_nodes(scope if scope is not None else self.ctx.source.tree)
        return (node for node in own if isinstance(node, ast.Name))

    def _holds(self, node: ast.Name) -> bool:
        fact = self.ctx.fact(node)
        return holds_modules(fact) or holds_optimizers(fact)

    def _steps(self, node: ast.Name) -> bool:
        """Whether something that an object holds is asked for a step."""
        parents = self.ctx.source.parents
        match parents.get(parents.get(node, node)):
            case ast.Attribute(attr="step" | "zero_grad", value=ast.Attribute(value=owner)):
                return owner is node and is_plain_object(self.ctx.fact(node))
        return False
