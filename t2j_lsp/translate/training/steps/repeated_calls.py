"""Modules that an agent or a trainer calls again and again outside of its steps: to act, for targets."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from functools import cached_property
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.call_sites import called_function, reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import ListOf, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.objects import Objects
from t2j_lsp.translate.training.program.once import holds_arrays_alone

_PLAIN = (ast.For, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.comprehension, ast.ClassDef)
_LOOPS = ast.For | ast.AsyncFor | ast.While | ast.comprehension | ast.Lambda


class RepeatedCalls:
    """Finds calls that are worth a compilation: eager calls of small modules cost more than what they compute."""

    def __init__(
        self,
        inference: Inference,
        objects: Objects,
        allocations: Allocations,
        hosts: Collection[ast.AST | None],
        used: Collection[ast.AST],
    ) -> None:
        self.inference = inference
        self.objects = objects
        self.allocations = allocations
        self.hosts = hosts
        """Functions that make updates."""
        self.used = used
        """Statements that are part of compiled steps."""

    def is_repeated(self, node: ast.Call) -> bool:
        """Whether a call of a module stands in a function that a loop calls, and is given arrays of one shape.

        It must stand in no loop of the function itself, where a text grows by a token with each call.
        """
        function = self._function(node)
        info = self.inference.functions.get(function) if function is not None else None
        if info is None or info in self._compiled or info.owner is not None and info.owner.is_module:
            return False
        if not all(isinstance(self.inference.fact(a), Tensor) for a in node.args):
            return False
        if not all(map(holds_arrays_alone, self.allocations.facts(_owner(self.inference, node)))):
            return False
        return self._is_step(info.node) or self._trains(info.owner) or self._is_called_in_loop(info)

    def is_acting(self, node: ast.Call) -> bool:
        """Whether a call stands in a loop that a loop with updates goes through, as those over an environment's steps.

        In a text that is generated each call gets more; what a loop joins, or makes of lists, may be such.
        """
        loops = [at for at in ancestors(node, self.inference.source.parents) if isinstance(at, (*_SCOPES, *_PLAIN))]
        inside = list(takewhile(lambda at: not isinstance(at, _SCOPES), loops))
        if len(inside) < 2 or not all(isinstance(self.inference.fact(a), Tensor) for a in node.args):
            return False
        if not all(map(holds_arrays_alone, self.allocations.facts(_owner(self.inference, node)))):
            return False
        trains = any(n in self.used for loop in inside[1:] for n in symbols.walk(loop))
        return trains and not any(self._grows(n) for n in symbols.walk(inside[0]))

    def _grows(self, node: ast.AST) -> bool:
        """Whether something is joined, or made of a list."""
        fact = self.inference.fact(node.func) if isinstance(node, ast.Call) else None
        name = fact.name if isinstance(fact, Qual) else ""
        of_list = isinstance(node, ast.Call) and node.args and isinstance(self.inference.fact(node.args[0]), ListOf)
        return name in names_with(Trait.JOINS) or name in names_with(Trait.FROM_VALUES) and bool(of_list)

    @cached_property
    def _compiled(self) -> set[FunctionInfo]:
        """The functions that compiled steps call, and those that these call."""
        return reached_functions(self.inference, self.used)

    def _function(self, node: ast.AST) -> ast.AST | None:
        """The function around a node, if no loop of it is."""
        for at in ancestors(node, self.inference.source.parents):
            if isinstance(at, _LOOPS):
                return None
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
                return at
        return None

    def _is_step(self, function: ast.AST) -> bool:
        """Whether a function makes updates, and none in a loop of its own: then it is called in one."""
        loops = [n for n in symbols.walk(function) if isinstance(n, ast.For | ast.While)]
        return function in self.hosts and not any(n in self.used for loop in loops for n in symbols.walk(loop))

    def _trains(self, owner: ClassInfo | None) -> bool:
        """Whether a method of the class makes updates."""
        return owner is not None and any(self._is_step(method.node) for method in owner.methods.values())

    def _is_called_in_loop(self, info: FunctionInfo) -> bool:
        """Whether a loop that trains calls a function: the one that acts, in front of the one that learns."""
        return any(self._trains_in(self._loops(call)) for call in self.objects.calls(info))

    def _loops(self, node: ast.AST) -> list[ast.AST]:
        around = ancestors(node, self.inference.source.parents)
        return [at for at in around if isinstance(at, ast.For | ast.While)]

    def _trains_in(self, loops: Iterable[ast.AST]) -> bool:
        """Whether a loop has or calls what makes updates."""
        outermost = list(loops)[-1:]
        calls = [n for loop in outermost for n in symbols.walk(loop) if isinstance(n, ast.Call)]
        called = [called_function(self.inference.fact(call.func)) for call in calls]
        return any(info is not None and info.node in self.hosts for info in called)


def called_module(inference: Inference, node: ast.Call) -> ast.expr:
    """The module that a call is of: ``net`` of ``net(x)`` and of ``net.forward(x)``."""
    match node.func:
        case ast.Attribute(attr="forward", value=value) if is_module(inference.fact(value)):
            return value
    return node.func


def _owner(inference: Inference, node: ast.Call) -> ast.expr:
    """The module that a call is of, or whose method it calls."""
    func = node.func
    if (
        isinstance(func, ast.Attribute)
        and is_module(inference.fact(func.value))
        and not is_module(inference.fact(func))
    ):
        return func.value
    return called_module(inference, node)
