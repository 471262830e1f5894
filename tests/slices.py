"""Which rows of long tables a run of the whole suite takes: every table is tried, and each of its rows in turn.

A table that compiles programs or starts processes row by row is most of what the suite costs, and its rows try one
piece of code in many places. A run takes a share of such a table, the next day's run another, so that all rows are
tried in ``SHARES`` days; ``T2J_ROWS=all`` takes all, ``T2J_ROWS=2`` the share of that number, which a run says in its
first lines. Tests that are asked for by path are all run.

A fifth is the last means by which a run of everything became shorter, behind what made the tests themselves cheaper: of
11,139 tests a third of the tables leaves 8,378, a fifth 7,917.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TypeVar

SHARES = 5
SHORT = 6
"""Rows of a table that is always taken whole, and the fewest that are taken of another."""
ALL = "all"
ROWS = "T2J_ROWS"
Row = TypeVar("Row")


def asked(environment: Mapping[str, str], today: date) -> str:
    """The share that a run takes: ``all``, or a number below ``SHARES``.

    Raises:
        ValueError: ``T2J_ROWS`` is neither.
    """
    said = environment.get(ROWS) or str(today.toordinal() % SHARES)
    if said != ALL and said not in map(str, range(SHARES)):
        raise ValueError(f"{ROWS} is {ALL} or a number below {SHARES}, not {said!r}")
    return said


def left_out(rows: Iterable[tuple[str, Row]], share: str) -> list[Row]:
    """The rows, each given with its table's name, that a run of this share doesn't take."""
    if share == ALL:
        return []
    tables: dict[str, list[Row]] = defaultdict(list)
    for table, row in rows:
        tables[table].append(row)
    return [row for table in tables.values() for row in _rest(table, int(share))]


def _rest(table: list[Row], share: int) -> list[Row]:
    """Every row but each fifth from the share's first on; a table that is cut has `SHORT` at least."""
    step = max(1, min(SHARES, len(table) // SHORT))
    return [row for place, row in enumerate(table) if place % step != share % step]
