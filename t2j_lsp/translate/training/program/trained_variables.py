"""What is trained outside of modules: bare tensors, and parameters that are a variable's or an object's own.

A tensor is a value in JAX, which a step gives anew; an ``nnx.Param`` is an object, which a step updates as a module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import is_loss

from .named_modules import targets


class TrainedVariables:
    """The variables of a file whose tensors and parameters are updated."""

    def __init__(self, context: Context, values: Callable[[ast.expr], Iterable[ast.expr | None]]) -> None:
        self.ctx = context
        self.values = values
        """What may be the value of an expression of the file; None for what can't be followed."""

    @cached_property
    def leaves(self) -> frozenset[str]:
        """The variables whose tensors are updated: by an optimizer, or by statements that read their ``.grad``."""
        nodes = self.ctx.source.nodes
        read = {
            n.value.id
            for n in nodes
            if isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.value, ast.Name)
        }
        walked = (n for n in nodes if read and isinstance(n, ast.For))
        lists = [loop for loop in walked if isinstance(loop.target, ast.Name) and loop.target.id in read]
        values = [value for loop in lists for value in self.values(loop.iter)]
        elements = (one for value in values if isinstance(value, ast.List | ast.Tuple) for one in value.elts)
        named = {one.id for one in elements if isinstance(one, ast.Name)}
        trees = {loop.iter.id for loop in lists if isinstance(loop.iter, ast.Name)}
        plans = self.ctx.plan.optimizers.values()
        return frozenset(read | named | trees | self.parameters).union(*(plan.leaves for plan in plans))

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The parameters outside of modules that optimizers update: ``log_sigma = nn.Parameter(...)``."""
        plans = [plan for plan in self.ctx.plan.optimizers.values() if plan.target]
        updated = {text for plan in plans for text in targets(plan.target)}
        return frozenset(text for text in updated if any(map(self._is_variable, self._written(text))))

    def _written(self, text: str) -> Iterator[ast.expr]:
        """Where a variable, or an attribute of ``self``, stands in the file."""
        yield from self.ctx.source.names.get(text, ())
        if text.startswith("self."):
            attributes = self.ctx.source.attributes.get(text.removeprefix("self."), ())
            yield from (node for node in attributes if ast.unparse(node) == text)

    def _is_variable(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, Tensor) and fact.variable

    def holds(self, node: ast.expr) -> bool:
        """Whether a name or an attribute is one of these parameters."""
        return self._is_variable(node) and ast.unparse(node) in self.parameters

    def is_model(self, node: ast.expr) -> bool:
        """Whether it names a module that is no loss, or one of these parameters."""
        fact = self.ctx.fact(node)
        return is_module(fact) and not is_loss(fact) or self.holds(node)
