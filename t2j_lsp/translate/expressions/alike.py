"""Loops over the parameters of modules of one class in pairs: an average of two, element by element.

``for p, q in zip(ema.parameters(), model.parameters()): p.data.mul_(d).add_(q.data, alpha=1 - d)`` does the same in
PyTorch's layouts and in Flax's, since both parameters have the same one.
"""

from __future__ import annotations

import ast

from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import FunctionInfo, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .walk_order import walk_alike

_METHODS = names_with(Trait.ELEMENTWISE_IN_PLACE)
_VALUES = names_with(Trait.SAME_VALUES)
_OF_PAIRS = names_with(Trait.OF_PAIRS)


def writes_alike(inference: Inference, statement: ast.AST | None) -> bool:
    """Whether a statement writes into a parameter what it computes of it and its pair, element by element."""
    if not isinstance(statement, ast.stmt):
        return False
    for place in with_ancestors(statement, inference.source.parents):
        if isinstance(place, ast.FunctionDef | ast.ClassDef):
            return False
        if isinstance(place, ast.For) and (names := _paired(inference, place)):
            return _statement(inference, statement, names)
    return False


def _paired(inference: Inference, loop: ast.For) -> set[str]:
    """The names of the parameters that a loop takes in pairs, and of what it computes of them."""
    match loop:
        case ast.For(target=ast.Tuple(elts=targets), iter=ast.Call(func=ast.Name(id="zip"), args=args) as pairs):
            if len(targets) != len(args) or not walk_alike(inference, pairs):
                return set()
            names = {t.id for t in targets if isinstance(t, ast.Name)}
            for target in targets:
                if isinstance(target, ast.Tuple) and len(target.elts) == 2:  # a name and a parameter
                    names |= {t.id for t in target.elts[1:] if isinstance(t, ast.Name)}
        case _:
            return set()
    for statement in loop.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _elementwise(inference, value, names):
                names.add(name)
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=ast.Tuple(elts=values)) if all(
                _elementwise(inference, value, names) for value in values
            ):
                names |= {e.id for e in elts if isinstance(e, ast.Name)}
    return names


def _statement(inference: Inference, statement: ast.stmt, names: set[str]) -> bool:
    match statement:
        case ast.Expr(value=value) | ast.Assign(targets=[ast.Attribute(attr="data")], value=value):
            return _elementwise(inference, value, names)
    return False


def _elementwise(inference: Inference, node: ast.expr, names: set[str]) -> bool:
    """Whether an expression treats all elements of the parameters alike, and reads no other tensors."""
    match node:
        case ast.Name(id=name):
            fact = inference.fact(node)
            return name in names or not isinstance(fact, Tensor) or fact.rank == 0
        case ast.Constant():
            return True
        case ast.Attribute(value=value, attr=attr):
            of_self = isinstance(value, ast.Name) and not isinstance(inference.fact(node), Tensor)
            return of_self or attr == "data" and _elementwise(inference, value, names)
        case ast.UnaryOp(operand=operand):
            return _elementwise(inference, operand, names)
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
            return _elementwise(inference, left, names) and _elementwise(inference, right, names)
        case ast.Call(func=func, args=args, keywords=keywords):
            if not all(_elementwise(inference, given, names) for given in [*args, *(k.value for k in keywords)]):
                return False
            fact = inference.fact(func)
            if isinstance(fact, Qual):
                return fact.name in _OF_PAIRS
            info = called_function(fact)
            if info is not None:
                return _averages(inference, info)
            if isinstance(func, ast.Attribute) and func.attr in _METHODS | _VALUES | _OF_PAIRS:
                return _elementwise(inference, func.value, names)
    return False


def _averages(inference: Inference, info: FunctionInfo) -> bool:
    """Whether a function returns nothing but what is computed element by element of what it is given."""
    given = {a.arg for a in ast.walk(info.node.args) if isinstance(a, ast.arg)}
    for statement in ast.walk(info.node):
        if isinstance(statement, ast.Return):
            if statement.value is None or not _elementwise(inference, statement.value, given):
                return False
        elif isinstance(statement, ast.stmt) and not isinstance(statement, ast.FunctionDef | ast.If | ast.Expr):
            return False
    return True
