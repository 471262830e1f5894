"""Masks that select what a loss is computed with: a compiled step takes the positions, since it must know shapes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Tensor

from .step_calls import Refused

if TYPE_CHECKING:
    from .passed import Input


def mask_of(inference: Inference, node: ast.AST) -> ast.expr | None:
    """The mask that a value is selected by: ``mask`` of ``out[mask]`` and of ``out.masked_select(mask)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="masked_select"), args=[*_, mask]):
            return mask
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return next((i for i in indices if isinstance(f := inference.fact(i), Tensor) and f.dtype == "bool"), None)


def selects(mask: ast.expr) -> str:
    """Why code that selects by a mask can't be compiled."""
    return f"how many elements {ast.unparse(mask)} selects isn't known under jit: use jnp.where, or where= of a mean"


def pass_positions(inference: Inference, inputs: Mapping[str, Input], parts: Sequence[ast.AST]) -> None:
    """Pass ``jnp.nonzero(mask)`` for masks that come from outside of a step. Raises Refused for others."""
    parents = inference.source.parents
    made = {n for one in inputs.values() if one.given for place in one.places for n in ast.walk(place)}
    for node in (n for part in parts for n in ast.walk(part) if n not in made):
        mask = mask_of(inference, node)
        if mask is None:
            continue
        one = next((i for i in inputs.values() if mask in i.places), None)
        indexes = one is not None and all(
            isinstance(at := parents.get(place), ast.Subscript) and at.slice is place and isinstance(at.ctx, ast.Load)
            for place in one.places
        )
        if one is None or not indexes:
            raise Refused(f"The loss can't be computed under jit: {selects(mask)}.")
        one.positions = True
