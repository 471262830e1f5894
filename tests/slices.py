"""Which tests a run of the whole suite takes: each table and each folder is tried, and each of their tests in turn.

Tests that compile programs or start processes are most of what the suite costs, and many of them try one piece of code
in many places. A run takes each twelfth row of a long table, and of a folder's other tests of this kind each twelfth of
all together; the next day's run takes others, so that all are tried in ``SHARES`` days. Of the conversions that are
only looked at as text it takes one of ``HALVES``. ``T2J_ROWS=all`` takes all, ``T2J_ROWS=2`` the share of that number,
which a run says in its first lines. Tests that are asked for by path are all run, and so are those of `conftest.ALWAYS`
and those outside of `conftest.IN_HALVES` that start and compile nothing.

This is the last means by which a run of everything became shorter, behind what made the tests themselves cheaper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TypeVar
from zlib import crc32

SHARES = 12
HALVES = 2
"""Shares of the tests that neither compile nor start anything."""
ALL = "all"
ROWS = "T2J_ROWS"
Test = TypeVar("Test")


def asked(environment: Mapping[str, str], today: date) -> str:
    """The share that a run takes: ``all``, or a number below ``SHARES``.

    Raises:
        ValueError: ``T2J_ROWS`` is neither.
    """
    said = environment.get(ROWS) or str(today.toordinal() % SHARES)
    if said != ALL and said not in map(str, range(SHARES)):
        raise ValueError(f"{ROWS} is {ALL} or a number below {SHARES}, not {said!r}")
    return said


def left_out(
    tests: Iterable[tuple[str, Test]], share: str, always: tuple[str, ...] = (), shares: int = SHARES
) -> list[Test]:
    """The tests, each given with its table's name (``folder/file::function``), that a run of this share doesn't take.

    A table of as many rows as there are shares is cut by itself, the shorter ones of a folder as one. Of files whose
    names start as one of ``always``, only long tables are cut.
    """
    if share == ALL:
        return []
    tables: dict[str, list[Test]] = defaultdict(list)
    for table, test in tests:
        tables[table].append(test)
    short: dict[str, list[Test]] = defaultdict(list)
    out: list[Test] = []
    for table, rows in tables.items():
        if len(rows) >= shares:
            out += _rest(table, rows, shares, int(share))
        elif not table.startswith(always):
            short[table.partition("::")[0].rpartition("/")[0]] += rows
    for folder, rows in short.items():
        out += _rest(folder, rows, min(shares, len(rows)), int(share))
    return out


def _rest(name: str, tests: list[Test], step: int, share: int) -> list[Test]:
    """Every test but each of a step. Where a table begins goes by its name: no share has the first row of all."""
    first = crc32(name.encode()) + share
    return [test for place, test in enumerate(tests) if (place + first) % step]
