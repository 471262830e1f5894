"""The brackets of a text: what stands in which, and whether anything but white space and comments does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bracket:
    """A pair of brackets that isn't part of a string: ``text[start:end]`` with both of them."""

    start: int
    end: int
    commas: tuple[int, ...]
    """The commas that separate what stands in it, but for those of a lambda's parameters."""
    clauses: tuple[int, ...]
    """Where the ``for`` and ``if`` of a comprehension start that stands in it."""
    group: bool
    """Whether they only group, as in ``(a + b)``: no call, no subscript, no tuple or list."""


class Brackets:
    """Every pair of brackets of a text that isn't part of a string."""

    def __init__(self, text: str, pairs: dict[int, Bracket], comments: tuple[tuple[int, str], ...]) -> None:
        self.text = text
        self.pairs = pairs
        """Each by where it starts, in the order in which they end."""
        self._comment_texts = dict(comments)
        self._comment_ends = {start + len(comment): start for start, comment in comments}

    def around(self, start: int, end: int) -> Bracket | None:
        """The brackets that hold nothing but ``text[start:end]``, white space and comments aside."""
        before = self._skipped_back(start)
        bracket = self.pairs.get(before - 1) if before else None
        if bracket is None or bracket.end - 1 < end:
            return None
        return bracket if self.next_code(end) == bracket.end - 1 else None

    def next_code(self, at: int) -> int:
        """The first index from ``at`` on with neither white space nor a comment."""
        while True:
            while at < len(self.text) and self.text[at] in " \t\f\r\n\\":
                at += 1
            comment = self._comment_texts.get(at)
            if comment is None:
                return at
            at += len(comment)

    def _skipped_back(self, at: int) -> int:
        """The end of the last thing before ``at`` that is neither white space nor a comment."""
        while True:
            while at and self.text[at - 1] in " \t\f\r\n\\":
                at -= 1
            start = self._comment_ends.get(at)
            if start is None:
                return at
            at = start
