"""Names that a file imports from its project, and that JAX has no use for: devices, scalers, generators."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from t2j_lsp.symbols import bound_as
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.source.imported_names import import_code, import_node, with_only


def drop_unread_names(ctx: Context, used: Counter[str], loads: Callable[[ast.AST], Counter[str]]) -> None:
    """Take out what the source reads and the output doesn't: the file that made it may have it no more.

    ``used`` counts what the output reads. Names that other files import from this one stay, and a module whose names
    all go is still imported.
    """
    elsewhere = ctx.options.used_elsewhere
    nodes = [node for node in ctx.source.tree.body if isinstance(node, ast.ImportFrom) and node.module]
    lost = {name for name in _bound(nodes) if not used[name]}
    if elsewhere is None or not lost:
        return
    read = loads(ctx.source.tree)
    lost = {name for name in lost if read[name]}
    lost -= set(elsewhere(lost)) if lost else set()
    for node in nodes:
        kept = [i for i, alias in enumerate(node.names) if bound_as(alias) not in lost]
        if len(kept) == len(node.names) or node in ctx.edits.deleted or not _is_of_project(ctx, node):
            continue
        if kept:
            ctx.edits.replace(node, import_code(ctx.source, node, with_only(import_node(ctx.source, node), kept)))
        elif (text := _module_alone(node, used)) is not None:
            ctx.edits.replace(node, text)


def _bound(nodes: list[ast.ImportFrom]) -> set[str]:
    return {bound_as(alias) for node in nodes for alias in node.names}


def _is_of_project(ctx: Context, node: ast.ImportFrom) -> bool:
    """Whether a module is converted with this file: its text is to be found."""
    return ctx.options.resolve is not None and ctx.options.resolve(node.level, node.module or "") is not None


def _module_alone(node: ast.ImportFrom, used: Counter[str]) -> str | None:
    """The import of the module that names were imported from; None where that would bind a name that is used."""
    module = node.module or ""
    package, _, last = module.rpartition(".")
    if node.level:
        return None if used[last] else f"from {'.' * node.level}{package} import {last}"
    return None if used[module.partition(".")[0]] else f"import {module}"
