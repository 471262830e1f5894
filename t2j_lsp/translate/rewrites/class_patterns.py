"""``match m:`` with ``case nn.Linear():``, which asks for classes as ``isinstance`` does.

Where a file that has gaps does so, it is read as if it asked with ``isinstance``, which tells what a module is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source


def with_class_patterns_as_conditions(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which classes are asked for by conditions; None where none is asked for by a pattern."""
    source = inference.source
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.Match) and isinstance(node.subject, ast.Name):
            if any(node.lineno <= gap.span.line <= (node.end_lineno or 0) for gap in gaps):
                edits += _conditions(source, node, node.subject.id) or []
    return RearrangedText.of(source.text, edits)


def _conditions(source: Source, node: ast.Match, subject: str) -> Edits | None:
    """A statement as ``if``, ``elif`` and ``else``; None where a pattern asks for more than a class."""
    asked = [_condition(source, case, subject) for case in node.cases]
    if None in asked or "" in asked[:-1] or asked == [""] or any(map(spans_lines, symbols.walk(node))):
        return None
    outer, inner = source.indent(node.lineno), source.indent(node.cases[0].pattern.lineno)
    if not inner.startswith(outer) or not source.starts_line(node):
        return None
    edits: Edits = []
    for number, (case, condition) in enumerate(zip(node.cases, asked, strict=True)):
        first = case.pattern.lineno
        start = source.starts[first - 1] if number else source.span(node)[0]
        end = source.text.index(":", source.span(case.guard or case.pattern)[1])  # behind brackets around it
        if [*source.comments_between(start, end)] or source.indent(first) != inner:
            return None
        words = f"{'elif' if number else 'if'} {condition}" if condition else "else"
        edits.append((start, end, [Fragment(f"{outer if number else ''}{words}", start, end)]))
        last = node.cases[number + 1].pattern.lineno - 1 if number + 1 < len(node.cases) else node.end_lineno or 0
        for line in range(first + 1, last + 1):
            at = source.starts[line - 1]
            if source.text.startswith(inner, at):
                edits.append((at + len(outer), at + len(inner), []))
    return edits


def _condition(source: Source, case: ast.match_case, subject: str) -> str | None:
    """What a case asks, "" for everything; None where that is more than a class, or it binds names."""
    patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
    match case.pattern:
        case ast.MatchAs(pattern=None, name=None):
            return "" if case.guard is None else None
    classes = [source.segment(p.cls) for p in patterns if isinstance(p, ast.MatchClass)]
    bare = all(isinstance(p, ast.MatchClass) and not p.patterns and not p.kwd_attrs for p in patterns)
    if not bare or any("\n" in name for name in classes):
        return None
    listed = classes[0] if len(classes) == 1 else f"({', '.join(classes)})"
    guard = "" if case.guard is None else f" and ({source.segment(case.guard)})"
    return f"isinstance({subject}, {listed}){guard}"
