"""What a forward pass does outside of JAX, which jit does once, when the code is traced: draws of Python's and NumPy's
random numbers, and prints."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Mapping
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .call_sites import called_function
from .file import Inference
from .forward_pass import CONTAINERS, UnknownParameter
from .gates import Gate
from .kept_answers import kept_answers
from .numpy_attributes import NUMPY, computes_outside

_LIBRARIES = ("random.", "numpy.random.")
_NO_DRAWS = ("seed", "getstate", "setstate", "get_state", "set_state", "default_rng", "RandomState", "Random")
HOST_RANDOM = Gate(libraries=_LIBRARIES)
_BUILTINS = frozenset(dir(builtins))
PRINTS = Gate(words=frozenset({"print"}))
TAKES_OUT = names_with(Trait.TAKES_OUT)
"""Methods of tensors that take their values out of JAX."""
_NUMBERS = frozenset({"int", "float", "bool"})
_TAKES_OUT = Gate(words=TAKES_OUT)  # the set itself, which fills while the rules load
_MAKES_NUMBERS = Gate(words=_NUMBERS)
_DECIDING = ast.If | ast.IfExp | ast.While | ast.Assert
ONCE = "is drawn once under jit, when this is traced: draw from rngs, or hand the number in"


def is_host_draw(fact: Fact) -> bool:
    """Whether it is a function that draws outside of JAX: ``random.randint``, ``np.random.beta``."""
    return isinstance(fact, Qual) and fact.name.startswith(_LIBRARIES) and not fact.name.endswith(_NO_DRAWS)


def host_draw(inference: Inference, called: Fact) -> str | None:
    """The text of a draw outside of JAX that a module makes when it is called; None if there is none."""
    if not inference.has(HOST_RANDOM):
        return None
    calls = _passes(inference).host_calls(called)
    return next((ast.unparse(node.func) for node in calls if is_host_draw(inference.fact(node.func))), None)


def prints_in_forward(inference: Inference, called: Fact) -> list[ast.Call]:
    """The prints that a module makes when it is called."""
    if not inference.has(PRINTS):
        return []
    return [n for n in _passes(inference).host_calls(called) if is_print(n)]


def taken_out_in_forward(inference: Inference, called: Fact) -> list[ast.Call]:
    """Where a module takes values out of arrays when it is called, which have none where they are traced."""
    if not any(map(inference.has, (_TAKES_OUT, _MAKES_NUMBERS, NUMPY))):
        return []
    return [n for n in _passes(inference).host_calls(called) if takes_out(n, inference.facts)]


def decided_in_forward(inference: Inference, called: Fact) -> list[ast.expr]:
    """The conditions on arrays' values that decide what a module does when it is called."""
    return _passes(inference).decided(called)


def _asks_array(test: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _asks_array(inner, facts)
        case ast.BoolOp(values=values):
            return any(_asks_array(value, facts) for value in values)
    return isinstance(facts.get(test), Tensor)


def taken_out(inference: Inference, code: ast.AST) -> list[ast.Call]:
    """The same where some code runs, with the functions and modules of the file that it calls."""
    if not any(map(inference.has, (_TAKES_OUT, _MAKES_NUMBERS, NUMPY))):
        return []
    return [n for n in _passes(inference).host_calls_of(code) if takes_out(n, inference.facts)]


def takes_out(node: ast.Call, facts: Mapping[ast.AST, Fact]) -> bool:
    """Of what nothing is known it is taken to be a tensor's value: nothing else than arrays has these methods."""
    if computes_outside(node, facts):
        return True
    match node:
        case ast.Call(func=ast.Name(id=name), args=[given], keywords=[]) if name in _NUMBERS:
            return isinstance(facts.get(given), Tensor)
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in TAKES_OUT:
        return False
    fact = facts.get(node.func.value, UNKNOWN)
    unknown = fact == UNKNOWN or isinstance(fact, UnknownParameter)
    return isinstance(fact, Tensor) or unknown and node.func.attr != "tolist" and not node.args


def is_print(node: ast.AST) -> bool:
    """Whether a node is a call of Python's ``print``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def prints_an_array(inference: Inference, node: ast.Call) -> bool:
    """Whether a print shows an array's values, and not its shape or text only."""
    parts = [n for argument in (*node.args, *(k.value for k in node.keywords)) for n in symbols.walk(argument)]
    parents = inference.source.parents
    return any(_may_be_array(inference, n) and not isinstance(parents.get(n), ast.Attribute) for n in parts)


def _may_be_array(inference: Inference, node: ast.AST) -> bool:
    """Whether it is a tensor, or a variable of which nothing tells what it is."""
    fact = inference.fact(node) if isinstance(node, ast.expr) else None
    unknown = fact == UNKNOWN or isinstance(fact, UnknownParameter)
    return isinstance(fact, Tensor) or unknown and isinstance(node, ast.Name) and node.id not in _BUILTINS


class _Passes:
    """What the functions of one file do outside of JAX, and which they call: each is read once."""

    def __init__(self, inference: Inference) -> None:
        # Kept by the inference, which it must not keep alive.
        self.facts, self.functions = inference.facts, inference.functions
        self.read: dict[FunctionInfo, tuple[list[ast.Call], list[FunctionInfo], bool]] = {}
        self._runs: dict[tuple[FunctionInfo, ...], list[FunctionInfo]] = {}
        self._decisions: dict[FunctionInfo, list[ast.expr]] = {}

    def host_calls(self, called: Fact) -> list[ast.Call]:
        """The prints and draws that run when a module is called; of one of unknown parts those of every module."""
        return self._reached(self._forwards(called))

    def host_calls_of(self, code: ast.AST) -> list[ast.Call]:
        """The same where some code runs."""
        calls, inner, unknown = self._in(code)
        return [*calls, *self._reached([*inner, *(self.every_forward if unknown else ())])]

    def decided(self, called: Fact) -> list[ast.expr]:
        """The conditions on arrays' values in the functions that run when a module is called."""
        return [test for info in self._run(self._forwards(called)) for test in self._decided(info)]

    def _decided(self, info: FunctionInfo) -> list[ast.expr]:
        if info not in self._decisions:
            tests = (n.test for n in symbols.walk(info.node) if isinstance(n, _DECIDING))
            self._decisions[info] = [test for test in tests if _asks_array(test, self.facts)]
        return self._decisions[info]

    def _reached(self, first: list[FunctionInfo]) -> list[ast.Call]:
        return [call for info in self._run(first) for call in self._of(info)[0]]

    def _run(self, first: list[FunctionInfo]) -> list[FunctionInfo]:
        """Functions, with those that they call, in the order of their calls."""
        key = tuple(first)
        if key not in self._runs:
            self._runs[key] = self._in_order(first)
        return self._runs[key]

    def _in_order(self, first: list[FunctionInfo]) -> list[FunctionInfo]:
        seen: dict[FunctionInfo, None] = {}
        any_forward = iter(self.every_forward)
        waiting: list[FunctionInfo | None] = [*first[::-1]]  # None: the next of every forward pass, and those behind it
        while waiting:
            info = waiting.pop()
            if info is None:
                info = next(any_forward, None)
                if info is None:
                    continue
                waiting.append(None)
            if info in seen or info.external:
                continue
            seen[info] = None
            _, inner, unknown = self._of(info)
            waiting += [*([None] if unknown else ()), *inner[::-1]]
        return list(seen)

    @cached_property
    def every_forward(self) -> list[FunctionInfo]:
        functions = self.functions.values()
        return [f for f in functions if f.name == "forward" and f.owner is not None and f.owner.is_module]

    def _forwards(self, called: Fact) -> list[FunctionInfo]:
        """The forward passes that a call of a module may run."""
        if isinstance(called, Instance):
            info = called.cls.info.method("forward")
            return [info] if info is not None else []
        return list(self.every_forward) if is_module(called) else []

    def _of(self, info: FunctionInfo) -> tuple[list[ast.Call], list[FunctionInfo], bool]:
        """A function's own prints and draws, the functions it calls, and whether it calls modules of unknown parts."""
        if info not in self.read:
            self.read[info] = self._in(info.node)
        return self.read[info]

    def _in(self, code: ast.AST) -> tuple[list[ast.Call], list[FunctionInfo], bool]:
        calls: list[ast.Call] = []
        inner: list[FunctionInfo] = []
        unknown = False
        for node in (n for n in symbols.walk(code) if isinstance(n, ast.Call)):
            fact = self.facts.get(node.func, UNKNOWN)
            if is_print(node) or is_host_draw(fact) or takes_out(node, self.facts):
                calls.append(node)
            function = called_function(fact) or method_called(node, self.facts)
            if function is not None:
                inner.append(function)
            elif (parts := _parts(fact)) is not None:
                inner += [forward for part in parts for forward in self._forwards(part)]
            else:
                unknown |= is_module(fact)
        return calls, inner, unknown


def _parts(fact: Fact) -> list[Fact] | None:
    """The modules of the file that a call of a module runs: itself, or those in a container; None if nobody knows."""
    match fact:
        case Instance():
            return [fact]
        case Layer(name=name, items=None):
            return None if name in CONTAINERS else []
        case Layer(items=tuple(items)):
            parts = [_parts(item) for item in items if is_module(item)]
            known = [part for part in parts if part is not None]
            return list(itertools.chain(*known)) if len(known) == len(parts) else None
    return None


_passes = kept_answers(_Passes)


def method_called(node: ast.Call, facts: Mapping[ast.AST, Fact]) -> FunctionInfo | None:
    """The method of a class of the file that is called: ``self.stem(x)``."""
    if not isinstance(node.func, ast.Attribute):
        return None
    owner = facts.get(node.func.value, UNKNOWN)
    return owner.cls.info.method(node.func.attr) if isinstance(owner, Instance) else None
