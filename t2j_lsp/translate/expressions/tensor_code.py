"""Whether the code at hand computes with tensors: what isn't known to be one is taken for one there, or said."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import called_by_modules
from t2j_lsp.translate.inference.forward_pass import UnknownParameter, is_known
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, ListOf, Qual, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.join import holds_tensor
from t2j_lsp.translate.rule.names import OPERATOR_METHODS, only_tensor
from t2j_lsp.translate.source.assignments import values_of

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
        if function is None:
            return self._among_tensors_at_top
        if self.in_module:
            return True
        if function not in self._computing:
            known = map(self.ctx.inference.facts.get, symbols.walk(function.node))
            facts = [fact for fact in known if fact is not None]
            self._computing[function] = any(isinstance(fact, Tensor) or _holds_tensors(fact) for fact in facts)
        return self._computing[function]

    @cached_property
    def _among_tensors_at_top(self) -> bool:
        """Whether a script's own statements do, and no other library's arrays than numpy's are in the file."""
        inference = self.ctx.inference
        if not inference.state.array_libraries <= {"numpy"}:
            return False
        own = (s for s in inference.source.tree.body if not isinstance(s, ast.FunctionDef | ast.ClassDef))
        return any(isinstance(inference.facts.get(node), Tensor) for one in own for node in symbols.walk(one))

    @property
    def is_traced(self) -> bool:
        """Whether it is likely compiled: part of a module's call, or a function that doesn't train.

        Such a function is one of tensors, or of numbers only.
        """
        function = self.function
        if function is None or self.in_module:
            return function is not None
        if function not in self._given:
            facts = self.ctx.inference.facts
            names = {a.arg for a in _parameters(function)}
            read = [n for n in symbols.walk(function.node) if isinstance(n, ast.Name) and n.id in names and n in facts]
            trains = any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in symbols.walk(function.node))
            tensors = any(
                _holds_tensors(facts[node]) or self.may_be_tensor(node) or self._becomes_tensor(node) for node in read
            )
            numbers = bool(read) and all(isinstance(facts[node], Scalar) or self._is_only_passed(node) for node in read)
            self._given[function] = not trains and (tensors or numbers)
        return self._given[function]

    def may_be_tensor(self, node: ast.expr) -> bool:
        """Whether it is a tensor, a parameter that by its annotation may be one, or has a method of tensors alone."""
        if isinstance(self.ctx.fact(node), Tensor):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_tensors = only_tensor(node.func.attr, node) or self._is_operator(node, node.func)
            return not is_known(self.ctx.fact(node)) and of_tensors
        if self.function is None or not isinstance(node, ast.Name) or is_known(self.ctx.fact(node)):
            return False
        if self.is_tensor_in_a_branch(node):
            return True
        given = _parameters(self.function)
        kinds = [a.annotation for a in given if a.arg == node.id and a.annotation is not None]
        return any(ast.unparse(member).rpartition(".")[2] == "Tensor" for kind in kinds for member in _members(kind))

    def is_tensor_in_a_branch(self, node: ast.Name) -> bool:
        """Whether a name is given a tensor by one assignment, and something else that is known by another."""
        if self.function is None or is_known(self.ctx.fact(node)):
            return False
        facts = [self.ctx.fact(value) for value in values_of(self.function.node, node)]
        return len(facts) > 1 and all(map(is_known, facts)) and any(isinstance(fact, Tensor) for fact in facts)

    def _is_operator(self, node: ast.Call, func: ast.Attribute) -> bool:
        """Whether a method is called that no other arrays have where the file has none: ``x.abs()``, ``x.pow(2)``."""
        if func.attr not in OPERATOR_METHODS or len(node.args) > 1 or node.keywords:
            return False
        fact = self.ctx.fact(func.value)
        plain = not is_known(fact) and not (isinstance(fact, UnknownParameter) and fact.foreign)
        return plain and not self.ctx.inference.state.other_arrays and self.ctx.inference.imports_torch

    def origin(self, node: ast.expr) -> ast.expr:
        """What a name was assigned, where that happens once."""
        if not isinstance(node, ast.Name) or self.function is None:
            return node
        values = [
            n.value
            for n in symbols.walk(self.function.node)
            if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)
        ]
        return values[0] if len(values) == 1 else node

    def _becomes_tensor(self, node: ast.Name) -> bool:
        """Whether a value of unknown kind is what a tensor is made of, or has what tensors have.

        That is ``torch.as_tensor(x)``, which takes one, too; ``x.var(0)``; ``x.shape`` among tensors.
        """
        call = self.ctx.source.parents.get(node)
        if isinstance(call, ast.Attribute) and not is_known(self.ctx.fact(node)):
            return any(map(self.may_be_tensor, self._methods(node))) or call.attr == "shape" and self.among_tensors
        if not isinstance(call, ast.Call) or node not in call.args[:1] or is_known(self.ctx.fact(node)):
            return False
        return isinstance(self.ctx.fact(call.func), Qual) and isinstance(self.ctx.fact(call), Tensor)

    def _methods(self, node: ast.expr) -> Iterator[ast.Call]:
        """The calls of methods of a value, and of what they give: ``x.var(0)`` and ``x.var(0).sqrt()``."""
        parents = self.ctx.source.parents
        while isinstance(attribute := parents.get(node), ast.Attribute):
            call = parents.get(attribute)
            if not isinstance(call, ast.Call) or call.func is not attribute:
                return
            yield call
            node = call

    def _is_only_passed(self, node: ast.Name) -> bool:
        """Whether a value of unknown kind is handed on or computed with: no object of which parts are asked for."""
        parent = self.ctx.source.parents.get(node)
        asked = isinstance(parent, ast.Attribute | ast.Subscript | ast.For | ast.comprehension | ast.Starred)
        called = symbols.is_callee(node, self.ctx.source.parents)
        return not is_known(self.ctx.fact(node)) and not asked and not called

    @cached_property
    def _called_by_modules(self) -> set[FunctionInfo]:
        """Functions that methods of modules call, directly or through others."""
        return called_by_modules(self.ctx.inference.functions.values())


def _holds_tensors(fact: Fact) -> bool:
    """Whether a value is a list or tuple of tensors, or of such: ``list[tuple[Tensor, Tensor]]``."""
    return isinstance(fact, ListOf | Tuple) and holds_tensor(fact)


def _parameters(function: FunctionInfo) -> list[ast.arg]:
    return symbols.named_parameters(function.node)


def _members(kind: ast.expr) -> Iterator[ast.expr]:
    """The kinds of a union: ``A | B``, ``Union[A, B]``, ``Optional[A]``."""
    match kind:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _members(left)
            yield from _members(right)
        case ast.Subscript(value=union, slice=inner) if ast.unparse(union).endswith(("Union", "Optional")):
            for member in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
                yield from _members(member)
        case _:
            yield kind
