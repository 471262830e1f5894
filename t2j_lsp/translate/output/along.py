"""What a file takes from files of its project that are still PyTorch: they have to be converted along."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, Function

REASON = "{} {} PyTorch in {}: convert that file along, or its folder"


def report_files_to_convert(context: Context) -> None:
    """Note, once for each import, which of the modules and functions that it names other files hold as PyTorch."""
    for node in context.source.tree.body:
        if not isinstance(node, ast.ImportFrom) or (other := _pytorch(context, node)) is None:
            continue
        module = "." * node.level + (node.module or "")
        names = [alias.name for alias in node.names if _is_pytorch(other, alias.name)]
        if names:
            are = "is" if len(names) == 1 else "are"
            context.report.note(node, module, "along", REASON.format(" and ".join(names), are, module))


def _pytorch(context: Context, node: ast.ImportFrom) -> Inference | None:
    other = context.inference.imported.get("." * node.level + (node.module or ""))
    return other if other is not None and other.imports_torch else None


def _is_pytorch(other: Inference, name: str) -> bool:
    """Whether a name is a module's class, or a function that names something of torch."""
    match other.env.get(name):
        case Class(info=info):
            return info.acts_as_module
        case Function(info=info):
            return not other.torch_names.isdisjoint(_names(info.node))
    return False


def _names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in symbols.walk(node) if isinstance(n, ast.Name))
