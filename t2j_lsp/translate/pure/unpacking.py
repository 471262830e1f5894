"""Assignments of a constructor to more than one place: pairs, chains, and names that a tuple is unpacked into."""

from __future__ import annotations

import ast

from t2j_lsp.translate.source.assignments import assigned


def is_attribute_of(node: ast.AST, own: str) -> bool:
    """Whether this is an attribute of the module itself."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own


def pairs(node: ast.stmt, own: str) -> list[tuple[ast.Attribute, ast.expr]]:
    """``self.heads, self.scale = heads, dim**-0.5``: the attributes, each with its value; empty for anything else."""
    several = [(t, v) for t, v in assigned(node) if isinstance(t, ast.Attribute) and is_attribute_of(t, own)]
    return several if len(several) > 1 and len(several) == len(assigned(node)) else []


def chained(node: ast.stmt, own: str) -> ast.Attribute | None:
    """The attribute of ``self.size = height, width = pair(size)``, whose other targets are names of the constructor."""
    if not isinstance(node, ast.Assign) or len(node.targets) < 2:
        return None
    mine = [t for t in node.targets if isinstance(t, ast.Attribute) and is_attribute_of(t, own)]
    others = [n for t in node.targets if t not in mine for n in ast.walk(t) if isinstance(n, ast.expr)]
    plain = all(isinstance(n, ast.Name | ast.Tuple | ast.List) for n in others)
    return mine[0] if len(mine) == 1 and plain else None


def given_to(name: str, node: ast.stmt) -> tuple[ast.expr, str] | None:
    """The value that an assignment gives a name, and the index of what it gets of it: ``a, b = pair(x)``."""
    for target in node.targets if isinstance(node, ast.Assign) else []:
        match target:
            case ast.Name(id=target_name) if target_name == name:
                return node.value, ""  # type: ignore[attr-defined]
            case ast.Tuple(elts=items) if all(isinstance(item, ast.Name) for item in items):
                names = [item.id for item in items if isinstance(item, ast.Name)]
                if name in names:
                    return node.value, f"[{names.index(name)}]"  # type: ignore[attr-defined]
    return None


def unpacked(node: ast.stmt, own: str) -> list[tuple[ast.Attribute, ast.expr]]:
    """The attributes that an assignment to more than one place gives a value, and which."""
    chain = chained(node, own)
    return pairs(node, own) if chain is None else [(chain, node.value)]  # type: ignore[attr-defined]
