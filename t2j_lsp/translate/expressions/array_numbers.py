"""Numbers out of arrays: ``float(x)`` takes a tensor of one element in PyTorch, in JAX only an array of rank 0."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Fact, Tensor
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket

from .context import Context
from .handlers import ExpressionRenderer


def number_of_array(ctx: Context, renderer: ExpressionRenderer, node: ast.Call) -> Piece | None:
    """``x.item()`` for ``float(x)``, and so for int and bool, of an array that has axes, or may have."""
    if len(node.args) != 1 or node.keywords:
        return None
    fact, name = ctx.fact(node.args[0]), ast.unparse(node.func)
    if not isinstance(fact, Tensor) or fact.rank == 0:
        return None
    number = f"{bracket(renderer.argument(node.args[0]), ATOM)}.item()"
    is_float = (fact.dtype or "").removeprefix("torch.").startswith("float")
    return Piece(number if name == "float" and is_float else f"{name}({number})")


def is_array_with_axes(fact: Fact) -> bool:
    """Whether a value is an array whose rank is known and not 0."""
    return isinstance(fact, Tensor) and bool(fact.rank)
