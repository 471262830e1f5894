"""Batches whose names are given to another batch between the passes of one update: ``x, y = batch2`` behind a loss.

A step is given both, and makes arrays of neither, so each has names of its own where a file that has gaps is read: the
second ``x`` is ``x_2`` from the statement on that takes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.positions import position
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.data.batch_bindings import ANOTHER, named_by

from .left_out import ObjectLeftOut

_REASON = re.compile(re.escape(ANOTHER).replace(re.escape("{names}"), r"(\w+(?:, \w+)*)"))


def with_batches_of_their_own(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such batches have names of their own; None if there are none."""
    left_out = ObjectLeftOut(inference)
    given = [{*match[1].split(", ")} for gap in gaps if (match := _REASON.search(gap.reason))]
    for loop in inference.source.nodes if given else ():
        if not isinstance(loop, ast.For | ast.While):
            continue
        for at, statement in enumerate(loop.body):
            names = named_by(statement)
            if names and any({*names} <= one for one in given) and _is_again(loop, at, names):
                for node, text in _renamed(inference.source, loop.body, at, names):
                    left_out.put(node, text)
    return RearrangedText.of(inference.source.text, left_out.made_edits())


def _is_again(loop: ast.For | ast.While, at: int, names: Sequence[str]) -> bool:
    """Whether the loop, or one statement above it, gives the same names values first, before anything reads them."""
    targets = _named(loop.target) if isinstance(loop, ast.For) else set[str]()
    for name in names:
        binding = [s for s in loop.body[:at] if name in named_by(s)]
        first = next((s for s in loop.body[:at] if name in _named(s)), None)
        if len(binding) + (name in targets) != 1 or name not in targets and first is not binding[0]:
            return False
    return True


def _named(node: ast.AST) -> set[str]:
    return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}


def _renamed(source: Source, block: Sequence[ast.stmt], at: int, names: Sequence[str]) -> list[tuple[ast.Name, str]]:
    """Where the names stand with what they are called there; nothing where others read them behind the loop."""
    rest = [n for statement in block[at:] for n in symbols.walk(statement)]
    inside = {n for statement in block for n in symbols.walk(statement)}
    functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.comprehension
    if any(isinstance(n, functions) and not _is_free(n, names) for n in rest):
        return []
    renamed: list[tuple[ast.Name, str]] = []
    value = getattr(block[at], "value", None)
    before = set(symbols.walk(value)) if value is not None else set()
    for name in names:
        text = _unused(name, source)
        if _is_read_behind(source, name, block[0], inside):
            return []
        stands = (n for n in rest if isinstance(n, ast.Name) and n.id == name and n not in before)
        renamed += [(node, text) for node in stands]
    return renamed


def _is_read_behind(source: Source, name: str, first: ast.stmt, inside: Container[ast.AST]) -> bool:
    """Whether code behind a loop reads a variable of it, before giving it another value."""
    scope, around = symbols.function_around(first, source.parents), {*symbols.ancestors(first, source.parents)}
    others = [n for n in source.names.get(name, ()) if n not in inside]
    if any(symbols.function_around(n, source.parents) is not scope and source.home(n) is scope for n in others):
        return True  # another function reads it
    loops = {a for a in around if isinstance(a, ast.For | ast.While) and a.body[0] is not first}
    carried = (n for n in others if n.lineno < first.lineno and isinstance(n.ctx, ast.Load))
    if any(not loops.isdisjoint(symbols.ancestors(n, source.parents)) for n in carried):
        return True  # the next round of a loop around it reads it
    behind = [n for n in others if n.lineno > first.lineno]
    mine = sorted(
        (n for n in behind if symbols.function_around(n, source.parents) is scope),
        key=position,
    )
    if not mine or isinstance(mine[0].ctx, ast.Load):
        return bool(mine)
    blocks = [a for a in symbols.ancestors(mine[0], source.parents) if not isinstance(a, ast.With | ast.expr)]
    return blocks[0] not in around and blocks[1] not in around  # the second is what the statement stands in


def _is_free(node: ast.AST, names: Sequence[str]) -> bool:
    """Whether nothing in a function or comprehension binds the names itself."""
    bound = {n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in symbols.walk(node) if isinstance(n, ast.arg)}
    return bound.isdisjoint(names)


def _unused(name: str, source: Source) -> str:
    number = 2
    while f"{name}_{number}" in source.words:
        number += 1
    return f"{name}_{number}"
