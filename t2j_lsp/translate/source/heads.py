"""Where the head of a file and its block of imports end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.names import is_torch


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


def preamble(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements in front of the first that defines something or uses PyTorch: imports, and what is among them."""
    torch: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            from_torch = isinstance(node, ast.ImportFrom) and is_torch(node.module or "")
            for alias in node.names:
                if from_torch or isinstance(node, ast.Import) and is_torch(alias.name):
                    torch.add(alias.asname or alias.name.partition(".")[0])
        elif _defines(node) or "*" in torch or torch & {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
            return
        yield node


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def import_block_end(body: list[ast.stmt]) -> int:
    """Last line of the imports that stand at the top: helpers go behind it."""
    end = 0
    for index, node in enumerate(preamble(body)):
        guarded = isinstance(node, ast.If | ast.Try) and all(
            isinstance(s, ast.Import | ast.ImportFrom | ast.Assign | ast.Pass) for s in [*node.body, *node.orelse]
        )
        if isinstance(node, ast.Import | ast.ImportFrom) or (guarded and index > 0):
            end = node.end_lineno or end
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
