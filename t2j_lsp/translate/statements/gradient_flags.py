"""``pe.requires_grad = False`` of a tensor that nothing asks gradients of, which goes."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import Tensor

_SLIP = "require_grad"
"""An attribute that tensors have not, which programs set where they mean ``requires_grad``."""


def switches_nothing_off(context: Context, node: ast.Assign, target: ast.Attribute) -> bool:
    """Whether an assignment of False to a tensor's flag changes nothing: the tensor was made here, and has none."""
    owner = context.fact(target.value)
    if not isinstance(owner, Tensor) or owner.variable or not owner.sure or not _is_false(node.value):
        return False
    if target.attr == _SLIP:
        return sum(isinstance(n, ast.Attribute) and n.attr == _SLIP for n in context.source.nodes) == 1
    function = context.scope.function
    given = {a.arg for a in named_parameters(function.node)} if function is not None else set()
    if target.attr != "requires_grad" or isinstance(target.value, ast.Name) and target.value.id in given:
        return False
    return not any(map(_asks_gradients, context.source.nodes))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _asks_gradients(node: ast.AST) -> bool:
    """Whether code makes a tensor one with gradients, or may do so."""
    match node:
        case ast.keyword(arg="requires_grad", value=value):
            return not _is_false(value)
        case ast.Attribute(attr="requires_grad_"):
            return True
        case ast.Assign(targets=targets, value=value):
            set_here = any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in targets)
            return set_here and not _is_false(value)
    return False
