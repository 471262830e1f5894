"""Statements that give a module a new state in front of its forward pass: ``model.hidden = model.init_hidden()``.

What they give carries no gradient, so they stay in front of the train step.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Qual, Scalar, Shape, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

_DEPTH = 3


def resets_state(inference: Inference, node: ast.stmt) -> bool:
    """Whether a statement only sets an attribute of a module to what surely has no gradient."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=owner)], value=value):
            return is_module(inference.fact(owner)) and _has_no_gradient(inference, value)
    return False


def _has_no_gradient(inference: Inference, value: ast.AST, depth: int = 0) -> bool:
    """Whether all that a value is computed from are numbers, and arrays that are made on the spot."""
    for node in symbols.walk(value):
        match node:
            case ast.Call():
                if not _makes_arrays(inference, node, depth):
                    return False
            case ast.Name() | ast.Attribute() if isinstance(node.ctx, ast.Load):
                if isinstance(inference.fact(node), Tensor) and not _is_made_here(value, node):
                    return False
            case ast.Lambda() | ast.Await() | ast.Yield() | ast.YieldFrom():
                return False
    return True


def _is_made_here(value: ast.AST, node: ast.expr) -> bool:
    """Whether a function that makes a value gives a name to a part of it: ``h0 = torch.zeros(2, 3)``."""
    return isinstance(node, ast.Name) and any(
        isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)
        for n in symbols.walk(value)
    )


def _makes_arrays(inference: Inference, call: ast.Call, depth: int) -> bool:
    fact = inference.fact(call.func)
    if isinstance(fact, Qual):
        return True
    if isinstance(fact, Function) and not fact.info.external:
        return depth < _DEPTH and _returns_no_gradient(inference, fact.info, depth + 1)
    if isinstance(fact, Class) or is_module(fact):
        return False
    moves = names_with(Trait.SAME_VALUES) | names_with(Trait.TO_DEVICE) | {"size"}
    known = isinstance(inference.fact(call), Scalar | Shape | Tensor)
    return known and isinstance(call.func, ast.Attribute) and call.func.attr in moves


def _returns_no_gradient(inference: Inference, info: FunctionInfo, depth: int) -> bool:
    body = ast.Module(body=list(info.node.body), type_ignores=[])
    sets = any(isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) for n in symbols.walk(body))
    return not sets and _has_no_gradient(inference, body, depth)
