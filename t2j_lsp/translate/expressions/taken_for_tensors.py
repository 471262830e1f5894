"""Values of unknown type that are taken for tensors, which is said, or may be tensors, which is said as well."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.inference.attributes import VIEWS_OF_TENSOR
from t2j_lsp.translate.rule.record import REGISTRY

from .context import Context
from .tensor_code import TensorCode

_SHOWN = 30
"""The longest receiver that a note repeats."""
_NO_DEVICE = "fails under jit, where arrays know no device: if this is a tensor, annotate it as torch.Tensor"


def note_taken(ctx: Context, node: ast.expr, receiver: ast.expr, name: str, certain: bool, why: str) -> None:
    """Say that a receiver is taken for a tensor: `certain` if only tensors have what it is asked for."""
    text = ctx.source.segment(receiver)
    shown = f"'{text}'" if len(text) <= _SHOWN and "\n" not in text else "this"
    reason = f"{shown} is taken for a tensor, because {why}"
    ctx.report.note(node, f"torch.Tensor.{name}", "tensor-method" if certain else "probable", reason)


def note_device(ctx: Context, node: ast.Attribute, code: TensorCode) -> None:
    """Say that what values of unknown type have as their device may not be compared, or handed on, under jit."""
    if node.attr == "device" and (_is_compared(node, ctx.source.parents) or _is_handed_on(node, ctx, code)):
        ctx.report.note(node, f"torch.Tensor.{node.attr}", "value-needed", _NO_DEVICE)


def _is_compared(node: ast.Attribute, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether it is compared with the attribute of that name of something else: ``x.device != y.device``."""
    match parents.get(node):
        case ast.Compare(left=left, comparators=[ast.Attribute(attr=name)]):
            return left is node and name == node.attr
    return False


def _is_handed_on(node: ast.Attribute, ctx: Context, code: TensorCode) -> bool:
    """Whether a module's code returns it, or hands it to a function, of what is asked for nothing that arrays lack."""
    if not isinstance(node.value, ast.Name) or not code.in_module or code.function is None:
        return False
    around = ctx.source.parents.get(node)
    if not isinstance(around, ast.Return | ast.Call | ast.Tuple | ast.keyword):
        return False
    reads = (
        n
        for n in symbols.walk(code.function.node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == node.value.id
    )
    return all(n.attr in VIEWS_OF_TENSOR or REGISTRY.get(f"torch.Tensor.{n.attr}") is not None for n in reads)
