"""Attributes of modules that are data, which NNX doesn't see by their first value.

State that is kept from call to call: ``self.state = None`` and ``self.state = state`` (None, if it isn't given), where
calls give arrays; an array that is kept in what isn't data escapes from jit. And records of arrays: named tuples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handed_classes import was_converted
from t2j_lsp.translate.inference.fillers import runs_in_forward
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Scalar, Tensor, Tuple, is_tensor
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.source.assignments import one_by_one


def keeps_state(
    ctx: Context,
    node: ast.Assign | ast.AnnAssign,
    target: ast.Attribute,
    owner: Instance,
    function: FunctionInfo | None = None,
) -> bool:
    """Whether a constructor gives an attribute nothing, or what may be nothing, and other methods give it arrays.

    ``function`` is what the statement stands in, if that isn't what is being written.
    """
    function = function or ctx.scope.function
    if function is None or function.name != "__init__" or not owner.cls.info.is_module or node.value is None:
        return False
    value = node.value
    may_be_none = isinstance(value, ast.Name) and value.id in function.none_parameters
    if not may_be_none and not (isinstance(value, ast.Constant) and value.value is None):
        return False
    given = list(_given_later(ctx, owner.cls.info, target))
    return any(_is_array(fact) or _is_unknown(fact) and runs_in_forward(method) for method, fact in given)


def may_be_data(fact: Fact) -> bool:
    """Whether NNX takes a value for data: arrays and modules, and what has others than numbers and words among it."""
    match fact:
        case Tuple(items=items):
            return not items or not all(isinstance(item, Scalar) for item in items)
        case ListOf(item=item):
            return not isinstance(item, Scalar)
        case Instance(cls=made) if was_converted(made):
            return True
    return is_module(fact) or is_tensor(fact)


def _is_array(fact: Fact) -> bool:
    """Whether it is an array that is no parameter, or a tuple or list of arrays."""
    held = element(fact) if isinstance(fact, Tuple | ListOf) else fact
    return is_tensor(held) and not (isinstance(held, Tensor) and held.variable)


def _is_unknown(fact: Fact) -> bool:
    return fact == UNKNOWN or isinstance(fact, UnknownParameter)


def _given_later(ctx: Context, info: ClassInfo, target: ast.Attribute) -> Iterator[tuple[FunctionInfo, Fact]]:
    """What other methods give the attribute, those of derived classes among them."""
    inference = ctx.inference
    for method in inference.functions.values():
        if method.runs_in_module and method.owner is not None and info in method.owner.ancestry():
            for node in symbols.walk(method.node):
                for one, value in _stores(node):
                    if isinstance(one, ast.Attribute) and ast.unparse(one) == ast.unparse(target):
                        yield method, inference.fact(value if value is not None else one)


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The targets of an assignment, each with its value if that is written for it alone."""
    if not isinstance(node, ast.Assign):
        return
    for whole in node.targets:
        for target, value in one_by_one(whole, node.value):
            if isinstance(target, ast.Tuple | ast.List):
                yield from ((part, None) for part in target.elts)
            else:
                yield target, value
