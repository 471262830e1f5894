"""Where a loss is differentiated."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.facts import Object, Scalar, Tensor


def differentiates(inference: Inference, node: ast.AST) -> bool:
    """Whether a node is PyTorch's ``loss.backward()``: not a method of that name that returns, or of another class."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"):
        return False
    owner = inference.fact(node.func.value)
    if isinstance(owner, Tensor):
        return True
    number = isinstance(owner, Scalar)  # has no such method: ``out = {"loss": 0.0}``, to which losses are added
    if is_known(owner) and not number and not (isinstance(owner, Object) and owner.kind == "scaler"):
        return False
    return isinstance(inference.source.parents.get(node), ast.Expr)
