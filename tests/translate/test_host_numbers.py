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
    own = "seen = []\n\n\ndef min(a, b):\n    seen.append(a)\n    return a\n\n\n"
    code = convert(own + SCRIPT.format(out="net(x, min(1.0, step / n))", before="pass", first="pass")).code
    assert "train_step(x, min(1.0, step / n))" not in code


ANNEALED = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def weight_at(kind, step, k=0.5):
    if kind == "logistic":
        return 1 / (1 + math.exp(-k * (step - 3)))
    return min(1.0, step / 3)


def loss_of(out, y, step, n):
    {weight}
    return F.mse_loss(out, y) * weight + out.abs().mean() * max(0.1, 1 - step / n)


torch.manual_seed(0)
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 12).reshape(3, 4)
losses = []
for step in range(6):
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""
MINIMUM = "weight = min(1.0, step / n)"


def annealed(weight: str = MINIMUM, loss: str = "loss_of(net(x), x * 0.5, step, 4)") -> str:
    translation = convert(ANNEALED.format(weight=weight, loss=loss))
    assert not translation.gaps
    return translation.code


@pytest.mark.jax
def test_extremes_in_functions_are_arrays() -> None:
    code = annealed()
    assert "weight = jnp.minimum(1.0, step / n)" in code and "jnp.maximum(" in code
    assert "train_step(x, step)" in code
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    exec(code, arrays)
    exec(annealed("weight = sorted([1.0, step / n])[0]"), plain)
    assert arrays["train_step"].jitted_fn._cache_size() == 1
    assert arrays["losses"] == pytest.approx(plain["losses"], rel=1e-5) and len(set(arrays["losses"])) == 6


@pytest.mark.parametrize(
    "weight",
    [
        f"{MINIMUM}\n    if weight > 0.5:\n        y = -y",
        f"{MINIMUM}\n    print(weight)",
        f"{MINIMUM}\n    for _ in range(int(weight)):\n        y = -y",
        f"{MINIMUM}\n    weight = weight if n else 1",
        "weight = 1.0\n    if n > 3:\n        weight = min(1.0, step / n)",
        "weight = min(1.0, step / n, 0.5)",
        "weight = min([1.0, step / n])",
        f"{MINIMUM}\n    if step > 2:\n        y = -y",
        f"{MINIMUM}\n    y = y[:step + 1] if step < 0 else y",
    ],
)
def test_extremes_that_python_has_to_know_stay(weight: str) -> None:
    code = convert(ANNEALED.format(weight=weight, loss="loss_of(net(x), x * 0.5, step, 4)")).code
    assert "jnp.minimum" not in code and "jnp.maximum" not in code


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_functions_of_numbers_are_called_in_front_of_the_step(kind: str) -> None:
    code = annealed(loss=f"F.mse_loss(net(x), x) * weight_at('{kind}', step)")
    assert f"train_step(x, weight_at('{kind}', step))" in code and "def train_step(net, opt, x, factor):" in code


def test_a_function_that_counts_its_calls_is_not() -> None:
    text = ANNEALED.format(weight=MINIMUM, loss="F.mse_loss(net(x), x) * weight_at('linear', step)")
    counting = text.replace("    if kind ==", "    seen.append(step)\n    if kind ==").replace(
        "def weight_at", "seen = []\n\n\ndef weight_at"
    )
    assert "train_step(x, weight_at" not in convert(counting).code
