"""What a forward pass does outside of JAX, which jit does once, when the code is traced: draws of Python's and NumPy's
random numbers, and prints."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, FunctionInfo, Instance, Qual, Tensor, is_module

from .call_sites import called_function
from .file import Inference
from .forward_pass import UnknownParameter
from .gates import Gate

_LIBRARIES = ("random.", "numpy.random.")
_NO_DRAWS = ("seed", "getstate", "setstate", "get_state", "set_state", "default_rng", "RandomState", "Random")
HOST_RANDOM = Gate(libraries=_LIBRARIES)
_BUILTINS = frozenset(dir(builtins))
PRINTS = Gate(words=frozenset({"print"}))
ONCE = "is drawn once under jit, when this is traced: draw from rngs, or hand the number in"


def is_host_draw(fact: Fact) -> bool:
    """Whether it is a function that draws outside of JAX: ``random.randint``, ``np.random.beta``."""
    return isinstance(fact, Qual) and fact.name.startswith(_LIBRARIES) and not fact.name.endswith(_NO_DRAWS)


def host_draw(inference: Inference, called: Fact) -> str | None:
    """The text of a draw outside of JAX that a module makes when it is called; None if there is none."""
    if not inference.has(HOST_RANDOM):
        return None
    calls = calls_in_forward(inference, called)
    return next((ast.unparse(node.func) for node in calls if is_host_draw(inference.fact(node.func))), None)


def prints_in_forward(inference: Inference, called: Fact) -> list[ast.Call]:
    """The prints that a module makes when it is called."""
    if not inference.has(PRINTS):
        return []
    calls = calls_in_forward(inference, called)
    return [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]


def prints_an_array(inference: Inference, node: ast.Call) -> bool:
    """Whether a print shows an array's values, and not its shape or text only."""
    parts = [n for argument in (*node.args, *(k.value for k in node.keywords)) for n in ast.walk(argument)]
    parents = inference.source.parents
    return any(_may_be_array(inference, n) and not isinstance(parents.get(n), ast.Attribute) for n in parts)


def _may_be_array(inference: Inference, node: ast.AST) -> bool:
    """Whether it is a tensor, or a variable of which nothing tells what it is."""
    fact = inference.fact(node) if isinstance(node, ast.expr) else None
    unknown = fact == UNKNOWN or isinstance(fact, UnknownParameter)
    return isinstance(fact, Tensor) or unknown and isinstance(node, ast.Name) and node.id not in _BUILTINS


def calls_in_forward(inference: Inference, called: Fact) -> Iterator[ast.Call]:
    """The calls that run in the file when a module is called; of one of unknown parts those of every module."""
    seen: set[FunctionInfo] = set()
    for info in _forwards(inference, called):
        yield from _calls(inference, info, seen)


def _forwards(inference: Inference, called: Fact) -> list[FunctionInfo]:
    """The forward passes that a call of a module may run."""
    if isinstance(called, Instance):
        info = called.cls.info.method("forward")
        return [info] if info is not None else []
    if not is_module(called):
        return []
    functions = inference.functions.values()
    return [f for f in functions if f.name == "forward" and f.owner is not None and f.owner.is_module]


def _calls(inference: Inference, info: FunctionInfo, seen: set[FunctionInfo]) -> Iterator[ast.Call]:
    if info in seen or info.external:
        return
    seen.add(info)
    for node in ast.walk(info.node):
        if not isinstance(node, ast.Call):
            continue
        yield node
        fact = inference.fact(node.func)
        function = called_function(fact) or _method(node, inference)
        for inner in [function] if function is not None else _forwards(inference, fact):
            yield from _calls(inference, inner, seen)


def _method(node: ast.Call, inference: Inference) -> FunctionInfo | None:
    """The method of a class of the file that is called: ``self.stem(x)``."""
    if not isinstance(node.func, ast.Attribute):
        return None
    owner = inference.fact(node.func.value)
    return owner.cls.info.method(node.func.attr) if isinstance(owner, Instance) else None
