"""Masks that nothing but sizes decide are computed with NumPy, so that their values are known under jit."""

from __future__ import annotations

import ast
import re

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.constant_masks import constant_masks
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece

NEEDS = Gate(names=(names_with(Trait.CONSTANT),))

_OF_JAX = re.compile(r"\b(?:jnp|jax|lax|nnx)\.")
_UNSURE = "this mask has to be known under jit: compute it with NumPy"


def plan_numpy_masks(context: Context) -> None:
    """Have such masks, and what they are made of, written with NumPy's functions."""
    constant = constant_masks(context.inference)
    for node in constant.masks | constant.values:
        context.plan.on_expression(node, lambda renderer, node=node: _in_numpy(context, node, renderer))  # type: ignore[misc]


def _in_numpy(context: Context, node: ast.expr, renderer: ExpressionRenderer) -> Piece:
    piece = renderer.usual(node)
    text = piece.text.replace("jnp.bool_", "bool")
    made = text.replace("jnp.", f"{renderer.need('np')}.") if "jnp." in text else text
    if _OF_JAX.search(made):
        context.report.gap(node, "mask", "unsure", _UNSURE)
        return piece
    return Piece(made, piece.precedence)
