"""Which calls of a file make an optimizer's step, and so write into parameters, and which values see that."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, Object

from .call_sites import called_function
from .file import Inference
from .gates import Gate
from .storage import is_variable


def stepping_functions(inference: Inference) -> set[FunctionInfo]:
    """The functions of a file that make an optimizer's step, themselves or by what they call."""
    if not inference.has(Gate(objects=frozenset({"optimizer"}))):
        return set()
    calls = {
        info: [n for n in symbols.walk(info.node) if isinstance(n, ast.Call)]
        for info in inference.functions.values()
        if not info.external
    }
    stepping: set[FunctionInfo] = set()
    while True:
        more = {info for info, made in calls.items() if any(steps(call, inference, stepping) for call in made)}
        if more <= stepping:
            return stepping
        stepping |= more


def steps(call: ast.Call, inference: Inference, stepping: set[FunctionInfo]) -> bool:
    """Whether a call writes into parameters: an optimizer's step, or a function that makes one."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
        fact = inference.fact(call.func.value)
        if isinstance(fact, Object):
            return fact.kind in ("optimizer", "scaler")
    return called_function(inference.fact(call.func)) in stepping


def stays_variable(value: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether a value becomes a Variable, that an optimizer writes: ``b = model.bias`` becomes the array in it."""
    return not isinstance(value, ast.Attribute) and is_variable(facts.get(value))
