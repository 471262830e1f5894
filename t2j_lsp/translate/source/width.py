"""How long a line of the output may be: as long as the longest of code in its source, within bounds."""

from __future__ import annotations

from collections.abc import Iterable

MIN_WIDTH, MAX_WIDTH = 88, 120


def line_limit(lines: Iterable[str]) -> int:
    """The limit for a source of these lines. Comments and strings that stand alone say nothing."""
    return min(
        MAX_WIDTH, max([MIN_WIDTH, *(len(line) for line in lines if not line.lstrip().startswith(("#", '"', "'")))])
    )
