"""Values that are functions whatever happens: lambdas, what functions of the file make of these, activations."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.symbols import own_nodes
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.layer import LAYERS

from .objects import Objects, VariableScope


def is_function(objects: Objects, node: ast.expr, scope: VariableScope, depth: int = 0) -> bool:
    """Whether an expression of a scope surely gives a function, and no module that holds parameters."""
    inference = objects.ctx.inference
    fact = inference.fact(node)
    if isinstance(node, ast.Lambda) or isinstance(fact, Function):
        return True
    if isinstance(fact, Layer) and fact.name in LAYERS:
        return LAYERS[fact.name].function is not None
    if isinstance(node, ast.IfExp):
        return all(is_function(objects, one, scope, depth) for one in (node.body, node.orelse))
    if isinstance(node, ast.Call):
        info = called_function(inference.fact(node.func))
        return info is not None and not info.external and _returns_functions(objects, info, None, depth)
    if not isinstance(node, ast.Name) or depth > 3:
        return False
    home = objects.home(node.id, scope)
    given = list(_given(inference, home, node.id))
    return bool(given) and all(_gives(objects, value, place, home, depth + 1) for value, place in given)


def _gives(objects: Objects, value: ast.expr | None, place: int | None, scope: VariableScope, depth: int) -> bool:
    """Whether an assigned value is a function, or its part at a place."""
    if value is None or place is None:
        return value is not None and is_function(objects, value, scope, depth)
    if isinstance(value, ast.Tuple | ast.List):
        return place < len(value.elts) and is_function(objects, value.elts[place], scope, depth)
    info = called_function(objects.ctx.inference.fact(value.func)) if isinstance(value, ast.Call) else None
    return info is not None and not info.external and _returns_functions(objects, info, place, depth)


def _returns_functions(objects: Objects, info: FunctionInfo, place: int | None, depth: int) -> bool:
    """Whether every ``return`` of a function gives a function, at a place of a tuple."""
    own = list(own_nodes(info.node))
    returned = [node for node in own if isinstance(node, ast.Return)]
    if not returned or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own):
        return False
    return all(_gives(objects, node.value, place, VariableScope(info), depth + 1) for node in returned)


def _given(inference: Inference, home: VariableScope, name: str) -> Iterator[tuple[ast.expr | None, int | None]]:
    """What a scope gives a variable, with its place if it is a part; None for what isn't an assignment."""
    root = home.function.node if home.function is not None else inference.source.tree
    for node in own_nodes(root):
        match node:
            case ast.Name(id=own) if own == name and not isinstance(node.ctx, ast.Load):
                parent = inference.source.parents.get(node)
                around = inference.source.parents.get(parent) if parent is not None else None
                match parent, around:
                    case ast.Assign(value=value), _:
                        yield value, None
                    case ((ast.Tuple(elts=elts) | ast.List(elts=elts)), ast.Assign(value=value)):
                        yield value, elts.index(node)
                    case _:
                        yield None, None
            case ast.arg(arg=own) if own == name:
                yield None, None
            case ast.FunctionDef(name=own) | ast.ClassDef(name=own) if own == name:
                yield None, None
