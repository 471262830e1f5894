"""Arrays that are given where a function takes an int and asks for its value: ``derived(field, p[3])``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import is_size, is_whole_number
from t2j_lsp.translate.rule.record import REGISTRY

from .context import Context

_NUMBERS = frozenset({"int", "bool"})
_DEEPEST = 3
_REASON = "{} is said to be of type {}, and its value is asked for: of an array that fails under jit"


def report_given_numbers(ctx: Context, node: ast.Call, info: FunctionInfo) -> None:
    """Note arrays that a call gives for parameters of whose values the function makes numbers or decisions."""
    for parameter, value in _pairs(node, info) if ctx.scope.function is not None else ():
        kind = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        if kind in _NUMBERS and isinstance(ctx.fact(value), Tensor) and _asks_for_value(ctx, info, parameter.arg):
            ctx.report.note(value, parameter.arg, "value-needed", _REASON.format(repr(parameter.arg), kind))


def _pairs(node: ast.Call, info: FunctionInfo) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The arguments of a call of a function, with their parameters; none where it has a ``*`` or ``**``."""
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return
    taken = symbols.positional_parameters(info.node)[info.owner is not None and isinstance(node.func, ast.Attribute) :]
    yield from zip(taken, node.args, strict=False)
    named = {p.arg: p for p in symbols.named_parameters(info.node)}
    yield from ((named[k.arg], k.value) for k in node.keywords if k.arg in named)


def _asks_for_value(ctx: Context, info: FunctionInfo, name: str, depth: int = 0) -> bool:
    """Whether a function makes a number of a parameter or decides by it, or hands it to a function that does."""
    for node in symbols.walk(info.node):
        match node:
            case ast.Call(func=ast.Name("bool" | "float" | "int" | "range"), args=args) if _among(name, args):
                return True
            case ast.If(test=test) | ast.While(test=test) if _is_compared(test, name):
                return True
            case ast.Call() if _takes_size(ctx, node, name):
                return True
            case ast.Call() if depth < _DEEPEST and isinstance(called := ctx.inference.facts.get(node.func), Function):
                handed = (p.arg for p, value in _pairs(node, called.info) if _among(name, [value]))
                if any(_asks_for_value(ctx, called.info, one, depth + 1) for one in handed):
                    return True
    return False


def _takes_size(ctx: Context, node: ast.Call, name: str) -> bool:
    """Whether a name is what a rule's function must know when it compiles: a size, or another whole number."""
    called = ctx.inference.facts.get(node.func)
    rule = REGISTRY.get(called.name) if isinstance(called, Qual) else None
    if rule is None or (bound := bind(rule.signatures[0], node, None)) is None:
        return False
    known = (one for one in bound if is_size(one, rule.name) or is_whole_number(one, rule.name))
    return any(_among(name, bound[one]) for one in known)


def _among(name: str, values: list[ast.expr]) -> bool:
    return any(isinstance(value, ast.Name) and value.id == name for value in values)


def _is_compared(test: ast.expr, name: str) -> bool:
    """Whether a condition compares a name with something else than None."""
    return any(
        isinstance(node, ast.Compare) and _among(name, [node.left, *node.comparators])
        and not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
        for node in symbols.walk(test)
    )  # fmt: skip
