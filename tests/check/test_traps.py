"""Every planted mistake is found, and every right conversion beside it is not accused."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Check
from .traps import Trap, indexing, initial, layers, losses, optimizers, recurrent, shapes

ALL = [
    *indexing.TRAPS,
    *shapes.TRAPS,
    *layers.TRAPS,
    *losses.TRAPS,
    *recurrent.TRAPS,
    *optimizers.TRAPS,
    *initial.TRAPS,
]
IDS = [f"row {trap.row}, {index}" for index, trap in enumerate(ALL)]


@pytest.mark.parametrize("trap", ALL, ids=IDS)
def test_the_right_conversion_is_equivalent_and_the_wrong_one_different(trap: Trap, check: Check) -> None:
    right = check(trap.text("torch"), trap.text("right"), eager=False, initial=trap.row in (117, 118))
    assert right.verdict is VerdictKind.EQUIVALENT, right.reason
    wrong = check(trap.text("torch"), trap.text("wrong"), eager=False, initial=trap.row in (117, 118))
    assert wrong.verdict is VerdictKind.DIFFERENT, wrong.reason
