"""Assignments that go where nothing in the output reads them any more: devices, unused seeds, partials."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.rule.facts import Partial, Qual
from t2j_lsp.translate.statements.control_flow import does_nothing, is_left_empty

from .imports import loads

_KEPT = "JAX places arrays on its default device; this name is kept because it is still read"


def drop_unread(context: Context, output: ast.Module, read: Counter[str]) -> bool:
    """Remove assignments (``device = ...``, an unused seed) that the output doesn't read; whether anything changed."""
    changed = False
    for edit, name in context.edits.removable_lines.items():
        if read[name] == 0 and edit in context.edits.made:
            context.edits.made.remove(edit)
            changed = True
    kept: list[ast.stmt] = []
    for node, name in context.edits.removable.items():
        seeds = node in context.rngs.seeds
        unread = read[name] == 0 and not _is_used_elsewhere(context, node, name)
        if unread or not seeds and _is_unread_local(context, output, node, name):
            _drop(context, node)
            changed = True
        elif seeds:
            continue
        elif getattr(node, "value", None) in context.edits.partials:
            context.report.count_converted()
        elif isinstance(partial := context.fact(getattr(node, "value", node)), Partial):
            name = partial.function.name if isinstance(partial.function, Qual) else "functools.partial"
            context.scope.statement = CurrentStatement(node)
            context.report.gap(node, name, "function-value", f"a partial of {name} is used as a value here")
            context.scope.statement = None
        else:
            kept.append(node)
    same = {node for choice in _choices(context, kept) for node in _chosen_alike(context, choice)}
    for node in kept:
        if node not in same:
            span = context.source.contract_span(node)
            context.report.findings.append(Finding(span, "torch.device", "note", Severity.NOTE, _KEPT))
    return changed or bool(same)


def _is_used_elsewhere(context: Context, node: ast.stmt, name: str) -> bool:
    """Whether other files of the project use a variable of the module level: ``from conf import device``."""
    around = ancestors(node, context.source.parents)
    if context.options.used_elsewhere is None or any(isinstance(one, FunctionNode | ast.ClassDef) for one in around):
        return False
    return bool(context.options.used_elsewhere({name}))


def _is_unread_local(context: Context, output: ast.Module, node: ast.stmt, name: str) -> bool:
    """Whether a variable of a function is read nowhere in it, whatever else has its name."""
    around = [one for one in ancestors(node, context.source.parents) if isinstance(one, FunctionNode | ast.ClassDef)]
    if not around or not isinstance(around[0], FunctionNode):
        return False
    if any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in symbols.walk(around[0])):
        return False
    written = _of_path([one.name for one in reversed(around)], output.body)
    return written is not None and loads(written)[name] == 0


def _of_path(path: Sequence[str], body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The definition of a dotted name in the output, if there is one of it."""
    named = {path[0], "__call__"} if path[0] == "forward" else {path[0]}
    definitions = [n for n in body if isinstance(n, FunctionNode | ast.ClassDef) and n.name in named]
    if len(definitions) != 1:
        return None
    return _of_path(path[1:], definitions[0].body) if len(path) > 1 else definitions[0]


def _drop(context: Context, node: ast.stmt) -> None:
    """Remove a statement, and the condition of which nothing is left then."""
    context.edits.drop(*context.source.span(node), inserted=False)
    context.edits.delete(node)
    for around in ancestors(node, context.source.parents):
        if isinstance(around, ast.If) and is_left_empty(context, around):
            _drop(context, around)
            return


def _choices(context: Context, kept: Sequence[ast.stmt]) -> Iterator[ast.If]:
    """The conditions, whole chains of them, in which assignments that stay are."""
    conditions: dict[ast.If, None] = {}
    for node in kept:
        around = [one for one in ancestors(node, context.source.parents) if isinstance(one, ast.If)]
        chain = [one for one in around if not context.source.text.startswith("elif", context.source.span(one)[0])]
        if chain:
            conditions[chain[0]] = None
    yield from conditions


def _chosen_alike(context: Context, choice: ast.If) -> list[ast.stmt]:
    """The assignments of a choice that is the same device in each case, and is written once; none for others."""
    blocks: list[list[ast.stmt]] = []
    inner: ast.If | None = choice
    while inner is not None:
        blocks.append(inner.body)
        rest = inner.orelse
        inner = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
    assigned = [block[0] for block in (*blocks, rest) if len(block) == 1 and block[0] in context.edits.removable]
    written = {_written(context, one) for one in assigned}
    start, end = context.source.span(choice)
    plain = context.source.starts_line(choice) and "#" not in context.source.text[start:end]
    if len(assigned) <= len(blocks) or len(written) > 1 or "" in written:
        return []
    if not plain or not does_nothing(context, choice):
        return []
    context.edits.drop(start, end, inserted=False)
    context.edits.replace(choice, written.pop())
    return assigned[1:]


def _written(context: Context, node: ast.stmt) -> str:
    """What an assignment became, if it got another value."""
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return ""
    place = context.source.span(node.value)
    values = [edit.new for edit in context.edits.made if (edit.start, edit.end) == place]
    return f"{ast.unparse(node.targets[0])} = {values[0]}" if len(values) == 1 else ""
