"""FixCost: the steps from a first draft to the verified code, and how large they are.

T2J counts the pairs of error and fix that people needed. Here nobody sits in between, so that a step is one hunk of the
diff, without context; lines and tokens weigh it. Comments, blank lines and layout at the ends of lines are no steps.
"""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

_LAYOUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


@dataclass(frozen=True, order=True)
class FixCost:
    """Hunks of the diff, and the lines and tokens in them: of a replaced piece, as many as the longer side has."""

    steps: int = 0
    lines: int = 0
    tokens: int = 0


def fix_cost(draft: str, fixed: str) -> FixCost:
    """What lies between two programs; the same in both directions, and nothing between a program and itself."""
    steps, lines = _changes(_lines(draft), _lines(fixed))
    return FixCost(steps, lines, _changes(_tokens(draft), _tokens(fixed))[1])


def _changes(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """The places that differ and their size, by the shorter of the two diffs: difflib's depends on the direction."""
    return min(_of_diff(left, right), _of_diff(right, left))


def _of_diff(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    sizes = [max(j - i, n - m) for tag, i, j, m, n in matcher.get_opcodes() if tag != "equal"]
    return len(sizes), sum(sizes)


def _lines(code: str) -> list[str]:
    """The lines that hold code, without comments and without what trails them."""
    lines = code.splitlines()
    for token in _read(code):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return [line.rstrip() for line in lines if line.strip()]


def _tokens(code: str) -> list[str]:
    read = [token.string for token in _read(code) if token.type not in _LAYOUT and token.string]
    return read or code.split()


def _read(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of a program; none where it is no Python."""
    try:
        return list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):  # the last in Python 3.12, of a carriage return
        return []
