"""``d() if not isinstance(d, nn.Module) and callable(d) else d``: a module, or a function that makes one.

An activation is a module in PyTorch and a function in JAX, where nothing tells it from a function that makes one.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module, is_module_class
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.layer import LAYERS

MADE_OR_GIVEN = (
    "activations are functions in JAX, and so is what makes a module: ask in another way which of the two this is"
)
_NO_FUNCTIONS = ast.Constant | ast.BinOp | ast.UnaryOp | ast.Compare | ast.List | ast.Tuple | ast.Dict


def makes(function: FunctionInfo, name: str) -> bool:
    """Whether a function calls its parameter without arguments, as what makes something."""
    calls = (n for n in symbols.walk(function.node) if isinstance(n, ast.Call) and not n.args and not n.keywords)
    return any(isinstance(call.func, ast.Name) and call.func.id == name for call in calls)


def values_given(inference: Inference, function: FunctionInfo, name: str) -> list[ast.expr]:
    """What the calls of a function in the file give for a parameter, and its default."""
    calls = [
        node
        for node in inference.source.nodes
        if isinstance(node, ast.Call) and called_function(inference.fact(node.func)) is function
    ]
    given = [(parameter, value) for call in calls for parameter, value in bound_arguments(call, function)]
    return [value for parameter, value in (*given, *defaults(function)) if parameter.arg == name]


def is_no_activation(inference: Inference, value: ast.expr) -> bool:
    """Whether a value is a function that makes one, a module in JAX too, or nothing that could be called."""
    if isinstance(value, ast.Lambda | _NO_FUNCTIONS):
        return True
    fact = inference.fact(value)
    if isinstance(fact, Layer):
        return fact.name in LAYERS and not LAYERS[fact.name].function
    return is_known(fact) and not is_module(fact)


def is_no_maker(inference: Inference, value: ast.expr) -> bool:
    """Whether a value is a module, a class, or nothing that could be called."""
    fact = inference.fact(value)
    return isinstance(value, _NO_FUNCTIONS) or is_module(fact) or is_module_class(fact, LAYERS)
