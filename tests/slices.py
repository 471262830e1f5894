"""Which tests a run of the whole suite takes: each table and each file is tried, and each of their tests in turn.

Tests that compile programs or start processes are most of what the suite costs, and many of them try one piece of code
in many places. A run takes a share of the rows of a long table, and of a file's other tests of this kind, of each file
at least one; the next day's run takes another, so that all are tried in ``SHARES`` days. Of the conversions that are
only looked at as text it takes one of ``HALVES``; of the tests in the same files that run both sides, a share of all
together: a file with a single one had it in every run, and there were 88 such files. ``T2J_ROWS=all`` takes all,
``T2J_ROWS=2`` the share of that number, which a run says in its first lines. Tests that are asked for by path are all
run, and so are those of `conftest.ALWAYS` and those outside of `conftest.IN_HALVES` that start and compile nothing.

This is the last means by which a run of everything became shorter, behind what made the tests themselves cheaper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TypeVar

SHARES = 12
HALVES = 2
"""Shares of the tests that neither compile nor start anything."""
LONG = 12
"""Rows of a table that is cut by itself; the rows of a shorter one count with the other tests of its file."""
FEWEST = 3
"""Rows that are taken of a long table at least."""
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
    tests: Iterable[tuple[str, Test]],
    share: str,
    always: tuple[str, ...] = (),
    shares: int = SHARES,
    together: tuple[str, ...] = (),
) -> list[Test]:
    """The tests, each given with its table's name (``file::function``), that a run of this share doesn't take.

    Of files whose names start as one of ``always``, only long tables are cut. Files whose names start as one of
    ``together`` have other tests in each run: what their short tables hold is shared out as of one file.
    """
    if share == ALL:
        return []
    tables: dict[str, list[Test]] = defaultdict(list)
    for table, test in tests:
        tables[table].append(test)
    files: dict[str, list[Test]] = defaultdict(list)
    out: list[Test] = []
    for table, rows in tables.items():
        if len(rows) >= LONG:
            out += _rest(rows, min(shares, len(rows) // FEWEST), int(share))
        elif not table.startswith(always):
            one = next((start for start in together if table.startswith(start)), table.partition("::")[0])
            files[one] += rows
    for tests_of_file in files.values():
        out += _rest(tests_of_file, min(shares, len(tests_of_file)), int(share))
    return out


def _rest(tests: list[Test], step: int, share: int) -> list[Test]:
    """Every test but each of a step, from the share's first on."""
    step = max(1, step)
    return [test for place, test in enumerate(tests) if place % step != share % step]
