"""Every planted mistake is found, and every right conversion beside it is not accused."""

from __future__ import annotations

import os

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Check
from .traps import Trap, errors, indexing, initial, layers, library, losses, optimizers, precision, recurrent, shapes

ALL = [
    *indexing.TRAPS,
    *shapes.TRAPS,
    *layers.TRAPS,
    *losses.TRAPS,
    *recurrent.TRAPS,
    *optimizers.TRAPS,
    *initial.TRAPS,
    *errors.TRAPS,
    *precision.TRAPS,
    *library.TRAPS,
]
TRIED = {
    1, *range(3, 56), *range(57, 70), 72, 73, 75, *range(77, 88), *range(90, 100), *range(101, 104), *range(106, 110),
    *range(112, 120), *range(121, 126), 127, 128, 129, 131, 132, 133, 136, 137, 140, 141, 142, 144, 145, 146, 147,
    149, 151, 152, 154, 155, 157, 162, 163, 164, 165, 167, 169, 170,
}  # fmt: skip
"""The rows of the table whose difference between PyTorch and JAX was tried and shows."""
ON_A_CPU = {
    8: "on a card, a division by zero and an index out of range raise nothing that a check could wait for",
    13: "numbers below float32's smallest normal one are lost in XLA's code for a CPU, not in a card's",
    54: "XLA's code for a card has no NaN where 0 times infinity is multiplied by 0",
}
"""Rows whose difference shows on a CPU only, and why."""
IDS = [f"row {trap.row}, {index}" for index, trap in enumerate(ALL)]


@pytest.mark.parametrize("trap", ALL, ids=IDS)
def test_the_right_conversion_is_equivalent_and_the_wrong_one_different(trap: Trap, check: Check) -> None:
    if os.environ.get("T2J_TEST_DEVICE") == "gpu" and trap.row in ON_A_CPU:
        pytest.skip(ON_A_CPU[trap.row])
    options = {"eager": False, "initial": trap.row in (117, 118), "causes": False}
    right = check(trap.text("torch"), trap.text("right"), **options)
    assert right.verdict is VerdictKind.EQUIVALENT, right.reason
    wrong = check(trap.text("torch"), trap.text("wrong"), **options)
    assert wrong.verdict is VerdictKind.DIFFERENT, wrong.reason


def test_every_tried_row_has_a_pair() -> None:
    assert not TRIED - {trap.row for trap in ALL}
