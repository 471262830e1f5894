"""What is plain to see of statements, comments and brackets in the text itself: libcst isn't asked, which takes long.

Most statements have their lines for themselves. Each answer is what `Concrete` would give; where that isn't plain,
there is none.
"""

from __future__ import annotations

import ast
import io
import tokenize
from typing import Protocol

from .concrete import Statement

_SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return | ast.Pass | ast.Import | ast.ImportFrom
_BLANK = " \t\f\r\n\\"


class TextWithSpans(Protocol):
    """What is asked of the text that a statement stands in."""

    text: str
    starts: list[int]

    def span(self, node: ast.AST) -> tuple[int, int]: ...


def plain_statement(source: TextWithSpans, node: ast.stmt) -> Statement | None:
    """A simple statement that has its lines for itself and no comment above or behind it; None for any other."""
    if not isinstance(node, _SIMPLE) or node.end_lineno is None:
        return None
    text, starts = source.text, source.starts
    start, end = source.span(node)
    first = starts[node.lineno - 1]
    past = starts[node.end_lineno] if node.end_lineno < len(starts) else len(text)
    if text[first:start].strip(" ") or text[end:past].strip(" \r\n"):
        return None
    above = text[starts[node.lineno - 2] : first].strip(" \t\r\n") if node.lineno > 1 else ""
    if above.startswith("#") or above.endswith("\\"):
        return None
    return Statement(None, start, end, end, True, None, (), None)


def comments_of(text: str, starts: list[int]) -> tuple[tuple[int, str], ...] | None:
    """Every comment as (index, text), in order; None where the lines of a text aren't plain."""
    if "#" not in text:
        return ()
    if "\f" in text or "\r" in text:
        return None
    try:
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return None
    comments = (one for one in tokens if one.type == tokenize.COMMENT)
    return tuple((starts[one.start[0] - 1] + one.start[1], one.string) for one in comments)


def may_be_in_brackets(text: str, start: int, end: int) -> bool:
    """Whether brackets may stand around ``text[start:end]``, with white space and comments between."""
    before, behind = start, end
    while before and text[before - 1] in _BLANK:
        before -= 1
    while behind < len(text) and text[behind] in _BLANK:
        behind += 1
    if text[behind : behind + 1] not in (")", "]", "}", "#"):
        return False
    line = text[text.rfind("\n", 0, before) + 1 : before]
    return line.endswith(("(", "[", "{")) or "#" in line
