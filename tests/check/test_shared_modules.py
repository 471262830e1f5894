"""A module that a loss reads beside another one that holds it: both are differentiated, or the step stays."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import VerdictKind
from t2j_lsp.translate import translate

from .conftest import Run

TEXT = """\
import copy
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(4, n)

    def forward(self, x):
        return torch.tanh(self.fc(x))


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.inner(x))


torch.manual_seed(0)
{made}
opt = torch.optim.Adam({trained}.parameters(), lr=0.1)
x = torch.randn(8, 4)
for i in range(3):
    opt.zero_grad()
    loss = model(x).pow(2).mean() + inner(x).abs().mean()
    loss.backward()
    opt.step()
    print(loss.item())
"""
HOLDERS = {
    "handed over": "inner = Net()\nmodel = Around(inner)",
    "in a Sequential": "inner = Net()\nmodel = nn.Sequential(inner, nn.Linear(4, 4))",
    "a part of it": "model = Around(Net())\ninner = model.inner",
    "from a function": "def build():\n    body = Net()\n    return Around(body), body\n\n\nmodel, inner = build()",
    "through both": "held = Net()\ninner = nn.Sequential(held, nn.Tanh())\nmodel = Around(held)",
}


@pytest.mark.unit
@pytest.mark.parametrize("trained", ["model", "inner"])
@pytest.mark.parametrize("made", HOLDERS.values(), ids=HOLDERS)
def test_both_are_differentiated(made: str, trained: str) -> None:
    code = translate(TEXT.format(made=made, trained=trained)).code
    other = {"model": "inner", "inner": "model"}[trained]
    assert f"(grads, _) = nnx.value_and_grad(loss_fn, argnums=(0, 1))({trained}, {other})" in code


@pytest.mark.unit
@pytest.mark.parametrize("made", ["inner, model = Net(), Net()", "inner = Net()\nmodel = Around(copy.deepcopy(inner))"])
def test_what_stands_apart_is_not(made: str) -> None:
    assert "argnums" not in translate(TEXT.format(made=made, trained="model")).code


LISTED = """class Many(nn.Module):
    def __init__(self, parts):
        super().__init__()
        {kept}

    def forward(self, x):
        return self.net(x)


inner = Net()
model = Many([inner])"""


@pytest.mark.unit
@pytest.mark.parametrize(
    "kept",
    [
        "layers = list(parts)\n        self.net = nn.Sequential(*layers, nn.Linear(4, 1))",
        "self.add_module('net', parts[0])",
    ],
)
def test_a_constructor_may_keep_what_it_is_given_in_any_way(kept: str) -> None:
    code = translate(TEXT.format(made=LISTED.format(kept=kept), trained="model")).code
    assert "argnums=(0, 1))(model, inner)" in code


@pytest.mark.unit
def test_two_optimizers_of_such_modules_are_said() -> None:
    text = TEXT.format(made=HOLDERS["handed over"], trained="model.fc").replace("x = ", "two = {}\nx = ")
    text = text.format("torch.optim.SGD(inner.parameters(), lr=0.1)").replace(
        "opt.step()", "opt.step()\n    two.step()"
    )
    text = text.replace("opt.zero_grad()", "opt.zero_grad()\n    two.zero_grad()")
    assert any("the two share variables" in gap.reason for gap in translate(text).gaps)


@pytest.mark.parametrize("trained", ["model", "inner"])
def test_they_are_trained_as_in_pytorch(run: Run, trained: str) -> None:
    made = HOLDERS["handed over"]
    assert run(TEXT.format(made=made, trained=trained)).verdict is VerdictKind.EQUIVALENT
