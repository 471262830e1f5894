"""What a name was last given where it is read, and whether what it holds is given more."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import walk, with_ancestors
from t2j_lsp.translate.source.text import Source


def given_last(source: Source, node: ast.Name) -> ast.expr | None:
    """The one value that a name has where it is read, whichever way leads there; None where that can't be told.

    It is assigned as a statement of a block around the read, in front of it, and no statement between them, and
    none of a loop around the read alone, assigns the name again.
    """
    for at in with_ancestors(node, source.parents):
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return None
        if not isinstance(at, ast.stmt):
            continue
        if isinstance(at, ast.For | ast.AsyncFor | ast.While | ast.Try) and _writes(at, node.id):
            return None
        block = source.block_of(at) or []
        for statement in reversed(block[: block.index(at)] if at in block else ()):
            match statement:
                case ast.Assign(targets=[ast.Name(id=node.id)], value=value):
                    return value
            if _writes(statement, node.id):
                return None
    return None


def is_filled(source: Source, held: ast.expr) -> bool:
    """Whether a program sets items of a dict or a list, or gives it more."""
    text = ast.unparse(held)
    for node in source.nodes:
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if ast.unparse(value) == text:
                return True
            case ast.Attribute(attr="append" | "update" | "insert" | "pop" | "extend" | "setdefault", value=value):
                if ast.unparse(value) == text:
                    return True
    return False


def _writes(statement: ast.stmt, name: str) -> bool:
    """Whether something in a statement gives a variable a value, or takes it away."""
    return any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in walk(statement))
