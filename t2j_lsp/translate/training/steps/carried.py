"""What of some code no gradient flows through."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.facts import UNKNOWN, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

_CUTS = names_with(Trait.STOPS_GRADIENT)
_ABOUT = names_with(Trait.ABOUT)


def is_cut(inference: Inference, node: ast.AST) -> bool:
    """Whether no gradient flows through a node: a comparison, a number, what is detached, what only tells of shapes."""
    match node:
        case ast.Compare() | ast.Constant() | ast.Assert() | ast.JoinedStr():
            return True
        case ast.Attribute(attr=attr) | ast.Call(func=ast.Attribute(attr=attr)) if attr in _CUTS | _ABOUT:
            return True
        case ast.With(items=items):
            return any(stops_gradients(inference, item.context_expr) for item in items)
        case ast.expr():
            fact = inference.fact(node)
            if isinstance(fact, Scalar):
                return fact.kind != "none"
            return isinstance(fact, Tensor) and fact.dtype in ("int", "bool")
    return False


def stops_gradients(inference: Inference, context: ast.expr) -> bool:
    """Whether a context of a with statement is one without gradients."""
    fact = inference.fact(context.func) if isinstance(context, ast.Call) else UNKNOWN
    return context_name(fact, context) in names_with(Trait.NO_GRADIENT)
