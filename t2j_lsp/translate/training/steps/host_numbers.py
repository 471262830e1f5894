"""Numbers that Python computes by what takes no arrays: ``min(1.0, step / n)``, ``0.5 if late else 1.0``.

A step that computes them itself would be compiled for each value of ``step``. It is given the number, as an array if
nothing else asks for its value.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor
from t2j_lsp.translate.source.evaluation import evaluated_once
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.held_numbers import HeldNumbers
from t2j_lsp.translate.training.program.static_values import run_by

from .host_values import always

_BUILTINS = frozenset({"min", "max", "abs", "int", "float", "round", "pow"})
_PARTS = ast.BinOp | ast.UnaryOp | ast.IfExp | ast.Compare | ast.BoolOp | ast.Call


def host_number(
    inference: Inference, flow: DataFlow, node: ast.expr, code: Sequence[ast.AST], exposed: Container[str]
) -> ast.expr | None:
    """The number that is computed around a variable in moved code, of what is known before that, if jit can't."""
    parents, number = inference.source.parents, None
    if symbols.is_callee(node, parents) or isinstance(inference.fact(node), Qual):
        return None
    place: ast.AST | None = parents.get(node)
    while isinstance(place, _PARTS) and _is_plain(inference, flow, place, exposed):
        if isinstance(place, ast.Call | ast.IfExp):
            number = place
        place = parents.get(place)
    if number is None or not evaluated_once(number, parents):
        return None
    known = inference.fact(number)
    if isinstance(known, Scalar) and known.kind not in ("int", "float"):
        return None
    if not flow.reads(number).isdisjoint({name for part in code for name in flow.writes(part)}):
        return None
    alone = any(always(number, part, inference) for part in code)
    return number if alone and HeldNumbers(inference).of(number).number else None


def _is_plain(inference: Inference, flow: DataFlow, node: ast.expr, exposed: Container[str]) -> bool:
    """Whether an expression computes with numbers that are known, by Python's own functions and those of ``math``."""
    match node:
        case ast.Name() | ast.Attribute():
            return (
                flow.variable(node) in exposed
                and not isinstance(inference.fact(node), Tensor)
                or _is_math(inference, node)
            )
        case ast.Call(func=func, keywords=[], args=args):
            known = _of_numbers(inference, node) or _is_of_numbers(inference, func)
            return known and all(_is_plain(inference, flow, one, exposed) for one in args)
        case ast.Constant():
            return isinstance(node.value, int | float | str)
    parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    return isinstance(node, _PARTS) and all(_is_plain(inference, flow, one, exposed) for one in parts)


def _is_of_numbers(inference: Inference, func: ast.expr) -> bool:
    """Whether a function of the file computes with nothing but numbers, and changes nothing."""
    info = called_function(inference.fact(func))
    if info is None or info.owner is not None or info.external or info.node.decorator_list:
        return False
    inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom
    for node in symbols.walk(info.node):
        if node is not info.node and isinstance(node, inner):
            return False
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, ast.Call) and not _of_numbers(inference, node):
            return False
    return True


def _is_math(inference: Inference, node: ast.expr) -> bool:
    fact = inference.fact(node)
    return isinstance(fact, Qual) and (fact.name == "math" or fact.name.startswith("math."))


def name_of_number(inference: Inference, number: ast.expr) -> str:
    """What a step calls a number: as the parameter of the function of the file that it is given for."""
    if (
        isinstance(number, ast.Subscript)
        or isinstance(number, ast.Call)
        and not (_of_numbers(inference, number) or _is_of_numbers(inference, number.func))
    ):
        return ""
    call = inference.source.parents.get(number)
    if isinstance(call, ast.keyword):
        return call.arg or "factor"
    info = run_by(inference.fact(call.func)) if isinstance(call, ast.Call) else None
    if info is None or not isinstance(call, ast.Call):
        return "factor"
    return next((parameter.arg for parameter, value in bound_arguments(call, info) if value is number), "factor")


def _of_numbers(inference: Inference, call: ast.Call) -> bool:
    builtin = isinstance(call.func, ast.Name) and call.func.id in _BUILTINS and call.func.id not in inference.env
    return builtin or _is_math(inference, call.func)
