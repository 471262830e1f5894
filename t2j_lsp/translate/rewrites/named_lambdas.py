"""``img2mse = lambda x, y: torch.mean((x - y) ** 2)``, called by a training step: a function with a name.

Where a file with such steps has gaps, it is read as if these were written with ``def``, as style guides ask.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source


def with_named_lambdas_as_functions(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which lambdas of the module level that steps call are functions; None where none are called."""
    source = inference.source
    reasons = [gap.reason for gap in gaps if gap.code == "training-loop"]
    if not reasons or "lambda" not in source.text:
        return None
    named = {
        statement.targets[0].id: statement
        for statement in source.tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda)
        if len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    }
    given = Counter(n.id for n in source.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    once = {name: statement for name, statement in named.items() if given[name] == 1 and source.starts_line(statement)}
    if not any(f"it calls {name}," in reason for reason in reasons for name in once):
        return None
    edits: Edits = []
    ends: set[int] = set()
    for name, statement in once.items():
        edits += _as_function(source, name, statement, statement.lineno - 1 in ends)
        ends |= {statement.end_lineno or 0}
    return RearrangedText.of(source.text, edits)


def _as_function(source: Source, name: str, statement: ast.Assign, is_behind_another: bool) -> Edits:
    """The edits that write one as a function; none where a comment would be lost, or a statement stands behind it."""
    assert isinstance(statement.value, ast.Lambda)
    (start, end), (first, last) = source.span(statement), source.span(statement.value.body)
    line_end = source.text.find("\n", end)
    behind = source.text[end : line_end if line_end >= 0 else len(source.text)].strip()
    if [*source.comments_between(start, end)] or behind and not behind.startswith("#"):
        return []
    head = f"def {name}({ast.unparse(statement.value.args)}):\n    return "
    body = source.text[first:last]
    left, right = ("(", ")") if "\n" in body else ("", "")
    space = "\n" * (2 - _blank(source, (statement.end_lineno or 0) + 1, 1)) if line_end >= 0 else ""
    edits: Edits = [(start, end, [Fragment(head + left, start, first), Fragment(body + right, first, last)])]
    if space and source.text[line_end:].strip():
        edits.append((line_end, line_end, [Fragment(space, line_end, line_end)]))
    above = source.line_text(statement.lineno - 1).strip() if statement.lineno > 1 else "#"
    if above and not above.startswith("#") and not is_behind_another:
        edits.insert(0, (start, start, [Fragment("\n" * (2 - _blank(source, statement.lineno - 1, -1)), start, start)]))
    return edits


def _blank(source: Source, line: int, step: int) -> int:
    """How many blank lines there are from a line on, up or down: two at most."""
    count = 0
    while count < 2 and 1 <= line <= len(source.starts) and not source.line_text(line).strip():
        count, line = count + 1, line + step
    return count
