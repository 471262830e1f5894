"""Numbers read as before PyTorch 0.4, ``loss.data[0]``, of tensors that have had no axes since: ``loss.item()``."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import function_around
from t2j_lsp.translate.rule.facts import Tensor

from .file import Inference
from .kept_answers import kept_answers


@kept_answers
def old_items(inference: Inference) -> dict[ast.expr, ast.expr]:
    """The items of a file that are read so, each with its tensor: a scalar, or what gradients are computed of."""
    if "data" not in inference.source.words:
        return {}
    read: list[tuple[ast.expr, ast.expr]] = []
    losses: set[tuple[ast.AST | None, str]] = set()
    for node in inference.source.nodes:
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=tensor, attr="data"), slice=ast.Constant(value=0), ctx=ast.Load()
            ):
                read.append((node, tensor))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward"), args=[]):
                losses.add((_function(inference, node), name))
    return {node: tensor for node, tensor in read if _is_scalar(inference, node, tensor, losses)}


def _is_scalar(inference: Inference, node: ast.expr, tensor: ast.expr, losses: set[tuple[ast.AST | None, str]]) -> bool:
    fact = inference.fact(tensor)
    if isinstance(fact, Tensor) and fact.rank is not None:
        return fact.rank == 0
    return isinstance(tensor, ast.Name) and (_function(inference, node), tensor.id) in losses


def _function(inference: Inference, node: ast.AST) -> ast.AST | None:
    return function_around(node, inference.source.parents)
