"""Tensors of the module level whose name is given to another one later, as tutorials do: ``w = ...`` twice.

A step is compiled with the tensor that it updates, so each has a name of its own where a file that has gaps is read:
the second ``w`` is ``w_2`` from the statement on that makes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.optimizers.held_tensors import AGAIN

from .left_out import ObjectLeftOut

_REASON = re.compile(re.escape(AGAIN).replace(re.escape("{name}"), r"(\w+)"))


def with_names_of_their_own(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such tensors have names of their own; None if there are none."""
    left_out = ObjectLeftOut(inference)
    for name in sorted({match[1] for gap in gaps if (match := _REASON.search(gap.reason))}):
        for node, text in _renamed(inference.source, name):
            left_out.put(node, text)
    return RearrangedText.of(inference.source.text, left_out.made_edits())


def _renamed(source: Source, name: str) -> list[tuple[ast.Name, str]]:
    """Where the name stands with what it is called there; nothing where it can't be told which of them it is."""
    named = source.names.get(name, ())
    if any(_is_out_of_order(source, node) or source.segment(node) != name for node in named):
        return []
    renamed: list[tuple[ast.Name, str]] = []
    count = 0
    for statement in source.tree.body:
        inside = [node for node in symbols.walk(statement) if isinstance(node, ast.Name) and node.id == name]
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        made = any(isinstance(one, ast.Name) and one.id == name for one in targets)
        before = _called(name, count)
        count += made
        if made and _called(name, count) in source.words - {name}:
            return []
        stores = [node for node in inside if isinstance(node.ctx, ast.Store)]
        renamed += [(node, _called(name, count) if node in stores else before) for node in inside]
    return [(node, text) for node, text in renamed if text != name]


def _called(name: str, count: int) -> str:
    """The name of the tensor that is made as such a one."""
    return name if count < 2 else f"{name}_{count}"


def _is_out_of_order(source: Source, node: ast.Name) -> bool:
    """Whether a name stands in a function or class, whose code runs whenever it is called."""
    return any(
        isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        for at in symbols.ancestors(node, source.parents)
    )
