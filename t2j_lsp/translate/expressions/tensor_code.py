"""Whether the code at hand computes with tensors: what isn't known to be one is taken for one there, or said."""

from __future__ import annotations

import ast
from functools import cached_property

from t2j_lsp.translate.inference.call_sites import called_by_modules
from t2j_lsp.translate.rule.facts import FunctionInfo, Tensor

from .context import Context


class TensorCode:
    """What the function around the current statement has to do with tensors."""

    def __init__(self, context: Context) -> None:
        self.ctx = context
        self._computing: dict[FunctionInfo, bool] = {}
        self._given: dict[FunctionInfo, bool] = {}

    @property
    def function(self) -> FunctionInfo | None:
        """The function around the current statement."""
        return self.ctx.scope.function

    @property
    def in_module(self) -> bool:
        """Whether it runs when a module is called: a method, or a function that a method calls."""
        function = self.function
        return function is not None and (function.runs_in_module or function in self._called_by_modules)

    @property
    def among_tensors(self) -> bool:
        """Whether tensors are computed with."""
        function = self.function
        if function is None or self.in_module:
            return function is not None
        if function not in self._computing:
            facts = (self.ctx.inference.facts.get(node) for node in ast.walk(function.node))
            self._computing[function] = any(isinstance(fact, Tensor) for fact in facts)
        return self._computing[function]

    @property
    def is_traced(self) -> bool:
        """Whether it is likely compiled: part of a module's call, or a function of tensors that doesn't train."""
        function = self.function
        if function is None or function.runs_in_module:
            return function is not None
        if function not in self._given:
            facts = self.ctx.inference.facts
            arguments = function.node.args
            names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
            read = (node for node in ast.walk(function.node) if isinstance(node, ast.Name) and node.id in names)
            trains = any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(function.node))
            self._given[function] = not trains and any(isinstance(facts.get(node), Tensor) for node in read)
        return self._given[function]

    @cached_property
    def _called_by_modules(self) -> set[FunctionInfo]:
        """Functions that methods of modules call, directly or through others."""
        return called_by_modules(self.ctx.inference.functions.values())
