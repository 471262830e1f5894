"""Three-way merge of texts by lines: what two sides made of one base, with the places marked where they disagree.

The algorithm is diff3, as in S. Khanna, K. Kunal, B. Pierce, "A Formal Investigation of Diff3" (FSTTCS 2007): lines of
the base that both sides kept part the texts into chunks; where one side left a chunk as it was, the other side's chunk
is taken, and where both changed it in different ways, it is a conflict.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MINE, BETWEEN, THEIRS = "<<<<<<< ", "=======", ">>>>>>> "
MINE_LABEL, THEIRS_LABEL = "as edited", "as t2j converts it now"

Lines = Sequence[str]


@dataclass(frozen=True)
class Merged:
    """A merged text and the number of conflicts that are marked in it."""

    text: str
    conflicts: int = 0


def merge(base: str, mine: str, theirs: str) -> Merged:
    """What ``mine`` and ``theirs`` made of ``base``, in one text.

    An edited text without a new conversion stays as it is, and a new conversion of an unedited text is taken as it is.
    Conflicts are marked with ``<<<<<<<``, ``=======`` and ``>>>>>>>`` on lines of their own. Line ends are those of
    ``mine``.
    """
    if base == theirs or mine == theirs:
        return Merged(mine)
    if base == mine:
        return Merged(theirs)
    end = _line_end(mine)
    if end != _line_end(base):
        base = _with_line_ends(base, end)
    if end != _line_end(theirs):
        theirs = _with_line_ends(theirs, end)
    merged: list[str] = []
    conflicts = 0
    for old, ours, other in _chunks(_lines(base), _lines(mine), _lines(theirs)):
        if old == ours or ours == other:
            merged += other
        elif old == other:
            merged += ours
        else:
            merged += _marked(ours, other, end)
            conflicts += 1
    return Merged("".join(merged), conflicts)


def marked_line(text: str) -> int | None:
    """The first line (from 1) on which a conflict is marked; None where none is."""
    for number, line in enumerate(_lines(text), 1):
        if line.rstrip("\r\n") == MINE + MINE_LABEL:
            return number
    return None


def _chunks(base: Lines, mine: Lines, theirs: Lines) -> Iterator[tuple[Lines, Lines, Lines]]:
    """The three texts in pieces that belong together; what all three have comes line by line."""
    in_mine, in_theirs = _matches(base, mine), _matches(base, theirs)
    at_base = at_mine = at_theirs = 0
    for kept in sorted(in_mine.keys() & in_theirs.keys()):
        to_mine, to_theirs = in_mine[kept], in_theirs[kept]
        if (kept, to_mine, to_theirs) != (at_base, at_mine, at_theirs):
            yield base[at_base:kept], mine[at_mine:to_mine], theirs[at_theirs:to_theirs]
        line = base[kept : kept + 1]
        yield line, line, line
        at_base, at_mine, at_theirs = kept + 1, to_mine + 1, to_theirs + 1
    yield base[at_base:], mine[at_mine:], theirs[at_theirs:]


def _matches(old: Lines, new: Lines) -> dict[int, int]:
    """The lines of the old text that the new one kept, and where they are there."""
    blocks = difflib.SequenceMatcher(None, old, new).get_matching_blocks()
    return {block.a + i: block.b + i for block in blocks for i in range(block.size)}


def _marked(mine: Lines, theirs: Lines, end: str) -> Iterator[str]:
    """A conflict with its marks; lines that both sides start or end with stand outside of them."""
    shorter = min(len(mine), len(theirs))
    head = next((i for i in range(shorter) if mine[i] != theirs[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if mine[-1 - i] != theirs[-1 - i]), rest)
    yield from mine[:head]
    yield f"{MINE}{MINE_LABEL}{end}"
    yield from _ended(mine[head : len(mine) - tail], end)
    yield f"{BETWEEN}{end}"
    yield from _ended(theirs[head : len(theirs) - tail], end)
    yield f"{THEIRS}{THEIRS_LABEL}{end}"
    yield from mine[len(mine) - tail :]


def _ended(lines: Lines, end: str) -> Iterator[str]:
    """Lines of which the last one ends as well, so that a mark can follow it."""
    for line in lines:
        yield line if line.endswith(("\n", "\r")) else line + end


def _lines(text: str) -> list[str]:
    """Lines with their ends; form feeds and the like end none."""
    return list(io.StringIO(text, newline=""))


def _line_end(text: str) -> str:
    """The end of a text's first line."""
    line = io.StringIO(text, newline="").readline()
    return "\r\n" if line.endswith("\r\n") else "\r" if line.endswith("\r") else "\n"


def _with_line_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", end)
