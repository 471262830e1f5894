"""Planners of training code run on files that have some, and on no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from t2j_lsp.translate import translate
from t2j_lsp.translate.training import plan

PLANNERS = (
    "Objects", "Optimizers", "Data", "Batches", "Frozen", "plan_gradients",
    "Steps", "Undifferentiated", "OutsideUpdates",
)  # fmt: skip
MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        with torch.no_grad():
            scale = x.std()
        for step in range(2):
            x = self.layer(x) / scale
        return x
"""
TRAINING = {
    "a gradient": "def train(loss):\n    loss.backward()\n",
    "an optimizer": "optimizer = torch.optim.SGD(Net().parameters(), lr=0.1)\n",
    "an optimizer that is passed": "def step(optimizer: torch.optim.Optimizer):\n    optimizer.step()\n",
    "a rate": "def halve(optimizer):\n    optimizer.param_groups[0]['lr'] /= 2\n",
    "a frozen layer": "net = Net()\nnet.layer.requires_grad_(False)\n",
    "a data pipeline": "from torch.utils.data import DataLoader\nloader = DataLoader([1, 2])\n",
    "a data set": "class Pairs(torch.utils.data.Dataset):\n    def __len__(self):\n        return 2\n",
    "mixed precision": "with torch.autocast('cuda'):\n    y = Net()(torch.ones(2, 3))\n",
}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each planner was started."""
    count: Counter[str] = Counter()

    def counted(name: str, planner: Callable[..., Any]) -> Callable[..., Any]:
        def start(*arguments: Any) -> Any:
            count[name] += 1
            return planner(*arguments)

        return start

    for name in PLANNERS:
        monkeypatch.setattr(plan, name, counted(name, getattr(plan, name)))
    return count


def test_no_planner_runs_on_a_model(runs: Counter[str]) -> None:
    assert translate(MODEL).converted
    assert runs == Counter()


@pytest.mark.parametrize("code", TRAINING.values(), ids=TRAINING)
def test_every_planner_runs_where_there_is_training_code(code: str, runs: Counter[str]) -> None:
    translate(f"{MODEL}\n\n{code}")
    assert set(runs) == set(PLANNERS)
