"""What is written above statements: why they stay as they were, and the comments of code that was replaced."""

from __future__ import annotations

import ast
from bisect import bisect_right

from t2j_lsp.contract import MARK
from t2j_lsp.translate.expressions.context import Context, Edits
from t2j_lsp.translate.expressions.scope import CurrentStatement


def report_outdated(context: Context) -> None:
    """Report what keeps values that an optimizer writes into, wherever the statement went."""
    for node, reason in context.plan.writes.snapshots.items():
        at = context.source.starts[node.lineno - 1]
        if not any(edit.start < at < edit.end for edit in context.edits.made):
            context.scope.statement = CurrentStatement(node)
        context.report.gap(node, "in-place", "in-place-shared", reason)
        context.scope.statement = None


def mark_todos(context: Context) -> None:
    """Write ``# TODO(t2j): reason`` above each gap; what an earlier conversion has marked keeps its mark.

    So does all of a function or class that it left as it was.
    """
    if not context.report.todos:
        return
    left = [
        range(f.lineno, (f.end_lineno or f.lineno) + 1)
        for f in context.source.nodes
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and context.source.is_marked(f)
    ]
    for start, reasons in context.report.todos.items():
        line = context.source.line_of(start)
        if line > 1 and context.source.line_text(line - 1).lstrip().startswith(MARK):
            continue
        if any(line in lines for lines in left):
            continue
        indent, newline = context.edits.indent(line), context.source.newline
        at = context.source.starts[line - 1]
        context.edits.add(at, at, "".join(f"{indent}{MARK}: {reason}{newline}" for reason in reasons), 1)
    context.report.todos.clear()


def keep_comments(edits: Edits) -> None:
    """Comments inside replaced code that the new code doesn't have go above the statement."""
    source = edits.source
    starts = sorted({s.lineno for s in source.written_nodes if isinstance(s, ast.stmt)})
    lost: dict[int, list[str]] = {}
    for edit in list(edits.made):
        if edit.end <= edit.start:
            continue
        for text in source.comments_between(edit.start, edit.end):
            if text not in edit.new and text not in edits.placed_comments:
                line = starts[max(0, bisect_right(starts, source.line_of(edit.start)) - 1)]
                lost.setdefault(line, []).append(text)
    for line, texts in lost.items():
        at = source.starts[line - 1]
        indent = edits.indent(line)
        edits.add(at, at, "".join(f"{indent}{text}{source.newline}" for text in texts), 0)
