"""Where the head of a file and its block of imports end."""

from __future__ import annotations

import ast


def head_end(body: list[ast.stmt]) -> int:
    """Line of the end of the docstring and the ``__future__`` imports, 0 if there are none."""
    end = 0
    for index, node in enumerate(body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            end = node.end_lineno or end
        else:
            break
    return end


def import_block_end(body: list[ast.stmt]) -> int:
    """Last line of the imports that stand at the top: helpers go behind it."""
    end = 0
    for index, node in enumerate(body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guarded = isinstance(node, ast.If | ast.Try) and all(
            isinstance(s, ast.Import | ast.ImportFrom | ast.Assign | ast.Pass) for s in [*node.body, *node.orelse]
        )
        if isinstance(node, ast.Import | ast.ImportFrom) or (guarded and index > 0):
            end = node.end_lineno or end
        elif not docstring:
            break
    return end


def header_end(owner: ast.AST) -> int:
    """The last line of a compound statement's header; 0 for a module."""
    lines = [getattr(owner, "lineno", 0)]
    for name, value in ast.iter_fields(owner):
        if name in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                lines += [getattr(n, "end_lineno", 0) or 0 for n in ast.walk(child)]
    return max(lines)
