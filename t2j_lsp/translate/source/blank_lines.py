"""The blank lines that go with lines that are removed."""

from __future__ import annotations

from .text import Source


def past_blank(source: Source, first: int, last: int, after: int) -> int:
    """The end of as many blank lines behind removed ones as stand in front of these: all at a file's head."""
    before = first - 1
    while before and not source.line_text(before).strip():
        before -= 1
    many, line = first - 1 - before if before else len(source.starts), last + 1
    while many and line < len(source.starts) and not source.line_text(line).strip():
        after, line, many = source.starts[line], line + 1, many - 1
    return after
