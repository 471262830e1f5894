"""Shares of long tables: each row has its turn, and a short table is whole in all of them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.slices import ALL, SHARES, SHORT, asked, left_out

LENGTHS = (1, SHORT, 2 * SHORT - 1, 2 * SHORT, 2 * SHORT + 1, SHARES * SHORT - 1, SHARES * SHORT, 100, 101)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_row_has_its_turn_and_no_share_is_too_small(length: int) -> None:
    rows = [("table", row) for row in range(length)] + [("other", -1)]
    taken = [{row for _, row in rows} - set(left_out(rows, str(share))) for share in range(SHARES)]
    assert set.union(*taken) == {-1, *range(length)}
    assert all(-1 in one and len(one) - 1 >= min(length, SHORT) for one in taken)
    assert all(len(one) - 1 <= -(-length // SHARES) for one in taken) or length < SHARES * SHORT
    assert left_out(rows, ALL) == []


def test_days_take_turns_unless_a_share_is_asked_for() -> None:
    day = date(2026, 1, 1)
    assert {asked({}, day + timedelta(days=n)) for n in range(SHARES)} == {str(share) for share in range(SHARES)}
    assert asked({"T2J_ROWS": "1"}, day) == "1"
    assert asked({"T2J_ROWS": ALL}, day) == ALL
    with pytest.raises(ValueError, match="T2J_ROWS is all or a number below 5, not '7'"):
        asked({"T2J_ROWS": "7"}, day)
