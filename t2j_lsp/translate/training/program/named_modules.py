"""What a text names that stands for a module: the modules of a target, and the one behind calls and attributes."""

from __future__ import annotations

import ast
import re


def targets(text: str) -> list[str]:
    """The modules of a target: ``(encoder, decoder)`` names two."""
    node = ast.parse(text, mode="eval").body
    return [ast.unparse(e) for e in node.elts] if isinstance(node, ast.Tuple) else [text]


_SAME = frozenset({"to", "cuda", "cpu", "train", "eval", "float", "double", "requires_grad_"})
"""Methods of modules that give the module itself."""


def same_module(node: ast.expr) -> ast.expr:
    """``model`` of ``model.to(device)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def base_module(node: ast.expr) -> ast.expr | None:
    """The name or ``self.x`` at the start of ``self.x.head``."""
    chain = [node]
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        chain.append(node)
    if not isinstance(node, ast.Name):
        return None
    if node.id == "self" and len(chain) > 1:
        return chain[-2]
    return node


def is_part(part: str, whole: str) -> bool:
    """Whether a module is named by what it is of another: ``model.fc``, ``model[0]``."""
    return part.startswith((f"{whole}.", f"{whole}["))


def base_of(module: str) -> str:
    """The variable by which a module is named: ``model`` of ``model.fc`` and of ``model[0]``."""
    return re.split(r"[.\[]", module, maxsplit=1)[0]
