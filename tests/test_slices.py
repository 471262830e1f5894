"""Shares of long tables and of folders: each test has its turn."""

from __future__ import annotations

import asyncio
import sys
from datetime import date, timedelta

import pytest

from tests.slices import ALL, HALVES, SHARES, asked, left_out

LENGTHS = (SHARES, SHARES + 1, 3 * SHARES - 1, 3 * SHARES, 100, 101)
FOLDERS = ((1,), (2,), (1, 1), (1, 1, 1, SHARES - 1), (5, SHARES, SHARES - 1), tuple([1] * 40))
"""The lengths of their tables."""


def taken(tests: list[tuple[str, int]], *always: str) -> list[set[int]]:
    return [{test for _, test in tests} - set(left_out(tests, str(share), always)) for share in range(SHARES)]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_row_of_a_long_table_has_its_turn_and_shares_are_alike(length: int) -> None:
    rows = [("file::table", row) for row in range(length)]
    shares = taken(rows)
    assert set.union(*shares) == set(range(length)) and sum(map(len, shares)) == length
    assert all(length // SHARES <= len(one) <= -(-length // SHARES) for one in shares)
    assert taken(rows, "file") == shares
    assert left_out(rows, ALL) == []


def test_no_share_has_the_first_row_of_all_tables() -> None:
    tests = [(f"file{number}::table", row) for number in range(50) for row in range(SHARES + 1)]
    lengths = [len(tests) - len(left_out(tests, str(share))) for share in range(SHARES)]
    assert sum(lengths) == len(tests) and max(lengths) < 1.3 * min(lengths)


@pytest.mark.parametrize("tables", FOLDERS)
def test_every_test_of_a_folder_has_its_turn_and_no_folder_is_left_out(tables: tuple[int, ...]) -> None:
    names = [f"folder/file{number % 3}::table{number}" for number, length in enumerate(tables) for _ in range(length)]
    tests = [*zip(names, range(len(names)), strict=True), ("other/file::table", -1)]
    shares = taken(tests)
    assert set.union(*shares) == {-1, *range(len(names))}
    assert all(-1 in one and one - {-1} for one in shares)


def test_files_of_a_folder_are_shared_out_together() -> None:
    tests = [(f"folder/test_{number}.py::test", number) for number in range(2 * SHARES)]
    shares = taken(tests)
    assert all(len(one) == 2 for one in shares)
    assert set().union(*shares) == set(range(2 * SHARES))


def test_files_that_are_always_taken_have_their_single_tests_in_every_share() -> None:
    tests = [(f"file::table{number}", number) for number in range(20)]
    assert taken(tests, "file") == [set(range(20))] * SHARES
    assert all(len(one) < 5 for one in taken(tests, "other"))


def test_texts_have_their_turn_every_second_day() -> None:
    tests = [(f"file::test{number}", number) for number in range(9)]
    first, second = ({n for _, n in tests} - set(left_out(tests, share, shares=HALVES)) for share in ("0", "1"))
    assert first | second == set(range(9))
    assert not first & second
    assert left_out(tests, "2", shares=HALVES) == left_out(tests, "0", shares=HALVES)


def test_days_take_turns_unless_a_share_is_asked_for() -> None:
    day = date(2026, 1, 1)
    assert {asked({}, day + timedelta(days=n)) for n in range(SHARES)} == {str(share) for share in range(SHARES)}
    assert asked({"T2J_ROWS": "1"}, day) == "1"
    assert asked({"T2J_ROWS": ALL}, day) == ALL
    with pytest.raises(ValueError, match="T2J_ROWS is all or a number below 12, not '12'"):
        asked({"T2J_ROWS": "12"}, day)


def test_a_test_of_texts_starts_no_process() -> None:
    with pytest.raises(AssertionError, match=r"::test_a_test_of_texts_starts_no_process starts .*: mark it"):
        asyncio.run(asyncio.create_subprocess_exec(sys.executable, "-V"))
