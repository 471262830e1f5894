"""Values of unknown type that are taken for tensors, which is said, or may be tensors, which is said as well."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .context import Context

_SHOWN = 30
"""The longest receiver that a note repeats."""
_NO_DEVICE = "fails under jit, where arrays know no device: if this is a tensor, annotate it as torch.Tensor"


def note_taken(ctx: Context, node: ast.expr, receiver: ast.expr, name: str, certain: bool, why: str) -> None:
    """Say that a receiver is taken for a tensor: `certain` if only tensors have what it is asked for."""
    text = ctx.source.segment(receiver)
    shown = f"'{text}'" if len(text) <= _SHOWN and "\n" not in text else "this"
    reason = f"{shown} is taken for a tensor, because {why}"
    ctx.report.note(node, f"torch.Tensor.{name}", "tensor-method" if certain else "probable", reason)


def note_device(ctx: Context, node: ast.Attribute) -> None:
    """Say that what two values of unknown type have as their device may not be compared under jit."""
    if node.attr == "device" and _is_compared(node, ctx.source.parents):
        ctx.report.note(node, f"torch.Tensor.{node.attr}", "value-needed", _NO_DEVICE)


def _is_compared(node: ast.Attribute, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether it is compared with the attribute of that name of something else: ``x.device != y.device``."""
    match parents.get(node):
        case ast.Compare(left=left, comparators=[ast.Attribute(attr=name)]):
            return left is node and name == node.attr
    return False
