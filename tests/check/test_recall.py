"""What torch answered is remembered by the whole request, and the oldest is forgotten first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2j_lsp.check.process.recall import Recall


class Sender:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> dict[str, Any]:
        self.count += 1
        return {"output": np.full(100, self.count)}


def test_the_same_request_is_sent_once() -> None:
    recall, send = Recall(), Sender()
    message = {"operation": "observe", "seed": 1, "x": np.arange(3)}
    first = recall.ask(message, send)
    assert recall.ask({**message, "x": np.arange(3)}, send)["output"] is first["output"]
    assert send.count == 1


@pytest.mark.parametrize("change", [{"seed": 2}, {"x": np.arange(4)}, {"x": np.array([0, 1, 3])}, {"more": None}])
def test_another_request_is_sent_again(change: dict[str, Any]) -> None:
    recall, send = Recall(), Sender()
    message = {"operation": "observe", "seed": 1, "x": np.arange(3)}
    recall.ask(message, send)
    recall.ask({**message, **change}, send)
    assert send.count == 2


def test_the_answer_used_longest_ago_is_forgotten_first() -> None:
    recall, send = Recall(limit=2000), Sender()
    for seed in (1, 2, 1, 3):
        recall.ask({"seed": seed}, send)
    assert send.count == 3
    recall.ask({"seed": 1}, send)
    assert send.count == 3
    recall.ask({"seed": 2}, send)
    assert send.count == 4


def test_what_fails_is_not_remembered() -> None:
    recall = Recall()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        recall.ask({"seed": 1}, fail)
    assert recall.ask({"seed": 1}, Sender())["output"][0] == 1
