"""Numbers of a loop that Python computes: a step is given them, and isn't compiled for each value of the counter."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp import convert

SCRIPT = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, alpha=1.0):
        {first}
        return self.fc(x) * alpha


torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 12).reshape(3, 4)
n = 3
losses = []
for step in range(6):
    scale = 1.0
    {before}
    out = {out}
    loss = F.mse_loss(out, x * 0.5)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""


def code_of(out: str, before: str = "pass", first: str = "pass") -> str:
    translation = convert(SCRIPT.format(out=out, before=before, first=first))
    assert not translation.gaps
    return translation.code


@pytest.mark.parametrize(
    ("out", "parameters", "given"),
    [
        ("net(x, min(1.0, step / n))", "alpha", "min(1.0, step / n)"),
        ("net(x, alpha=0.5 if step < 2 else 0.1)", "alpha", "0.5 if step < 2 else 0.1"),
        ("net(x, 1 - max(0.1, math.exp(-step)))", "factor", "max(0.1, math.exp(-step))"),
        ("net(x) * min(1.0, step / n)", "factor", "min(1.0, step / n)"),
        ("net(x, min(1.0, step / n)) * step", "alpha, step", "min(1.0, step / n), step"),
        ("net(x, 0.5 * step)", "step", "step"),  # arrays do for this
    ],
)
def test_a_step_is_given_the_number(out: str, parameters: str, given: str) -> None:
    code = code_of(out)
    assert f"def train_step(net, opt, x, {parameters}):" in code and f"train_step(x, {given})" in code


@pytest.mark.jax
@pytest.mark.parametrize("out", ["net(x, min(1.0, step / n))", "net(x, 0.5 if step < 2 else 0.1)"])
def test_it_is_compiled_once(out: str) -> None:
    space: dict[str, Any] = {}
    exec(code_of(out), space)
    assert len(set(space["losses"])) == 6
    assert space["train_step"].jitted_fn._cache_size() == 1


def test_a_number_that_a_forward_pass_asks_is_known_to_it() -> None:
    code = code_of("net(x, min(1.0, step / n))", first="x = x if alpha > 0.5 else -x")
    assert 'static_argnames="alpha"' in code and "train_step(net, opt, x, min(1.0, step / n))" in code


@pytest.mark.parametrize(
    ("out", "before"),
    [
        ("sum(net(x) for _ in range(min(3, step + 1)))", "pass"),
        ("net(x, max(net.fc.bias.mean().item(), 0.1))", "pass"),
        ("net(x, max(scale, 0.1))", "scale = net(x).mean().item()"),
        ("net(x) * (min(1.0, step / n) if step > 0 else net(x).mean())", "pass"),
    ],
)
def test_sizes_and_what_arrays_give_stay_where_they_are(out: str, before: str) -> None:
    code = code_of(out, before)
    assert "factor" not in code


def test_min_of_the_file_is_no_builtin() -> None:
    code = code_of("net(x, min(1.0, step / n))").replace("\n\n", "", 0)
    own = convert(
        "def min(a, b):\n    return a\n\n\n"
        + SCRIPT.format(out="net(x, min(1.0, step / n))", before="pass", first="pass")
    ).code
    assert "train_step(x, min(1.0, step / n))" in code and "train_step(x, min(1.0, step / n))" not in own
