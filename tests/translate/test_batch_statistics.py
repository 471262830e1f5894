"""Functions of normalisation that keep running statistics: the statistics are updated first."""

from __future__ import annotations

import pytest

from .convert import run
from .test_regressions import equal

OWN = """
import torch
import torch.nn.functional as F
from torch import nn

class Own(nn.Module):
    def __init__(self, n, track=True):
        super().__init__()
        self.track = track
        if track:
            self.register_buffer("running_mean", torch.zeros(n))
            self.register_buffer("running_var", torch.ones(n))
        else:
            self.running_mean = None
            self.running_var = None
        self.weight = nn.Parameter(torch.ones(n))
        self.momentum = 0.3

    def forward(self, x):
        return CALL

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Own(3), Own(3, track=False)

    def forward(self, x):
        return torch.tanh(self.one(x)) + self.two(x)
"""
STATISTICS = "self.running_mean, self.running_var, self.weight"
BATCH = f"F.batch_norm(x, {STATISTICS}, training=self.training or not self.track, momentum=self.momentum)"
CALLS = {
    "batch": BATCH,
    "inside": f"torch.relu({BATCH}) * 2",
    "where_they_are": f"F.batch_norm(x, {STATISTICS.replace(',', ' if self.track else None,', 2)}, None,"
    " self.training or not self.track)",
    "instance": f"F.instance_norm(x, {STATISTICS}, use_input_stats=self.training or not self.track, momentum=0.2)",
    "instance_of_its_own": f"F.instance_norm(x, {STATISTICS}, momentum=0.2)",
    "native": "torch.native_batch_norm(x, self.weight, None, self.running_mean, self.running_var,"
    " self.training or not self.track, 0.1, 1e-5)[0]",
}


@pytest.mark.parametrize("name", CALLS)
def test_statistics_are_updated_as_in_pytorch(name: str) -> None:
    """Outputs, gradients, and the buffers after a step in training."""
    equal(OWN.replace("CALL", CALLS[name]), f"statistics_{name}", 4, 3, 2, 5)


@pytest.mark.parametrize(
    "call",
    [
        "[F.batch_norm(x, self.running_mean, self.running_var, training=True) for _ in range(2)]",
        "F.batch_norm(x, self.running_mean, self.running_var, training=True) if self.track else x",
        "F.batch_norm(x, self.running_mean, self.running_var, training=next(self.modes))",
        "F.batch_norm(x + 1, self.running_mean, self.running_var, training=True)",
        "F.batch_norm(x, *self.statistics, training=True)",
    ],
)
def test_what_may_run_otherwise_is_left(call: str) -> None:
    """Not once for each statement, or with arguments that are no plain names."""
    result = run(OWN.replace("CALL", call))
    assert [gap.name for gap in result.gaps] == ["torch.nn.functional.batch_norm"]
    assert call.partition("(")[0].lstrip("[") in result.code
