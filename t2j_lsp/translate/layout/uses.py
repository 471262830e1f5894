"""In what places a class, or what holds a module, is read."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.type_comparisons import type_comparison
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Layer

_ARRAYS = ("weight", "bias", "running_mean", "running_var", "parameters", "named_parameters", "buffers")
_STATE = ("state_dict", "load_state_dict", "requires_grad_", "zero_grad", "train", "eval", "apply")
"""What a module may be asked for whatever the layout of its inputs: its arrays are the same ones."""


def is_asked(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a class is only named in an annotation, an ``isinstance`` or a comparison of types."""
    while not isinstance(node, ast.stmt):
        parent = parents.get(node)
        if parent is None:  # in an annotation that is a text: no part of the tree
            return True
        if isinstance(parent, ast.arg | ast.AnnAssign) and getattr(parent, "annotation", None) is node:
            return True
        if isinstance(parent, ast.FunctionDef) and parent.returns is node:
            return True
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Name) and parent.func.id == "isinstance"
        if type_comparison(parent) is not None:
            return True
        node = parent
    return False


def compares_with_none(node: ast.AST | None) -> bool:
    """``x is None``, ``x is not None``."""
    match node:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def leaves_layout(read: ast.expr, inference: Inference) -> bool:
    """Whether a read of a module has nothing to do with its inputs.

    It is compared with None, asked for its arrays or set to a mode, or asked for a part, whose reads count themselves.
    """
    use = inference.source.parents.get(read)
    if not isinstance(use, ast.Attribute):
        return compares_with_none(use)
    part = isinstance(inference.facts.get(read), Instance) and isinstance(inference.facts.get(use), Instance | Layer)
    return part or use.attr in _ARRAYS + _STATE


def is_of_super(parent: ast.AST | None) -> bool:
    """Whether a class is named in ``super(Net, self)``."""
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "super"
