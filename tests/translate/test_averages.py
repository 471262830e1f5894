"""Averages of the weights of two models: one map over both states."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

LOOP = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)


class Other(Net):
    pass


net, target, other, tau = Net(), Net(), Other(), 0.05
for p, q in zip({left}.parameters(), target.parameters()):
    {body}
{behind}
"""


def converted(body: str, left: str = "net", behind: str = "pass") -> str:
    done = convert(LOOP.format(left=left, body=body, behind=behind))
    code = " ".join(done.code.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")
    return code.replace("lambda p, q: (tau * p + (1 - tau) * q)", "lambda p, q: tau * p + (1 - tau) * q")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("q.data.copy_(tau * p.data + (1 - tau) * q.data)", "tau * p + (1 - tau) * q"),
        ("q.data.copy_(p.data)", "p"),
        ("q.data = tau * p.data + q.data * (1.0 - tau)", "tau * p + q * (1.0 - tau)"),
        ("q.data.mul_(1 - tau).add_(p.data, alpha=tau)", "(1 - tau) * q + tau * p"),
        ("q.data.mul_(1 - tau)\n    q.data.add_(tau * p.detach())", "(1 - tau) * q + tau * p"),
        ("q.data.mul_(0.9).add_(0.1, p.data - 1)", "0.9 * q + 0.1 * (p - 1)"),
    ],
)
def test_a_loop_that_averages_is_a_map_over_both_states(body: str, value: str) -> None:
    states = "nnx.state(net, nnx.Param), nnx.state(target, nnx.Param)"
    assert f"nnx.update(target, jax.tree.map(lambda p, q: {value}, {states}))" in converted(body)


@pytest.mark.parametrize(
    ("body", "left", "behind"),
    [
        ("q.data.copy_(p.data.abs())", "net", "pass"),
        ("q.data.copy_(p.data); print(p.sum())", "net", "pass"),
        ("q.data.copy_(p.data)", "other", "pass"),
        ("q.data.copy_(p.data)", "net", "print(q.sum())"),
        ("q.data.copy_(p.data * torch.ones(1))", "net", "pass"),
    ],
    ids=["more than arithmetic", "more statements", "another class", "read behind", "a tensor"],
)
def test_other_loops_stay_loops(body: str, left: str, behind: str) -> None:
    code = converted(body, left, behind)
    assert "tree.map" not in code and "for p, q in zip(" in code
