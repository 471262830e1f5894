"""Classes that are handed to code which calls some that take random numbers, and some that don't."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, Function
from t2j_lsp.translate.rule.facts import Fact, ListOf
from t2j_lsp.translate.rule.join import makes_modules
from t2j_lsp.translate.rule.names import is_jax

GIVEN_RNGS = "it is called with rngs, as the modules are that may stand here, and takes none: make it an nn.Module"


def is_called_without_rngs(inference: Inference, node: ast.expr) -> bool:
    """Whether a class goes where it isn't known that what is called makes modules, which are given ``rngs``."""
    around = inference.source.parents.get(node)
    if isinstance(around, ast.Dict) and node in around.values:
        table = inference.fact(around)
        values = [inference.fact(value) for value in around.values]
        known = isinstance(table, ListOf) and makes_modules(table.item) or any(map(was_converted, values))
        return not known and all(isinstance(value, Class | Function) for value in values)
    called = _called(inference, node)
    return bool(called) and not any(map(makes_modules, called))


def was_converted(fact: Fact) -> bool:
    """Whether it is a class of an earlier conversion, which wrote the calls of what it is given to, too."""
    return isinstance(fact, Class) and any(map(is_jax, fact.info.torch_bases))


def is_called_with_rngs(inference: Inference, node: ast.expr) -> bool:
    """Whether a class is handed to a function that calls it as it calls classes of modules."""
    return any(map(makes_modules, _called(inference, node)))


def _called(inference: Inference, node: ast.expr) -> list[Fact]:
    """What is known of a parameter that an argument is given for, where the function calls it."""
    parents = inference.source.parents
    call = parents.get(node)
    call = parents.get(call) if isinstance(call, ast.keyword) else call
    info = called_function(inference.fact(call.func)) if isinstance(call, ast.Call) and call.func is not node else None
    if info is None or info.external or not isinstance(call, ast.Call):
        return []
    names = {parameter.arg for parameter, value in bound_arguments(call, info) if value is node}
    reads = [n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id in names]
    return [inference.fact(n) for n in reads if isinstance(p := parents.get(n), ast.Call) and p.func is n]
