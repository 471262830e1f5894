"""In what places a class, or what holds a module, is read."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.type_comparisons import type_comparison


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


def is_of_super(parent: ast.AST | None) -> bool:
    """Whether a class is named in ``super(Net, self)``."""
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "super"
