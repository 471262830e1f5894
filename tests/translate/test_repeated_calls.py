"""Forward passes outside of the steps are compiled in the loop that trains: eager ones cost more than the step."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

HEAD = """\
import torch
from torch import nn

net, other = nn.Linear(3, 3), nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
"""
STEP = "    optimizer.zero_grad()\n    loss = net(x).square().mean()\n    loss.backward()\n    optimizer.step()\n"


@pytest.mark.parametrize("loop", ["for step in range(9):\n", "while x.mean() > 0.1:\n"])
@pytest.mark.parametrize("call", ["other(x)", "other.forward(x)", "net(x)"])
def test_what_a_training_loop_calls_is_compiled(loop: str, call: str) -> None:
    done = translate(f"{HEAD}{loop}{STEP}    x = {call}.detach()\n    print(x.sum())\n")
    assert not done.gaps
    assert (
        f"forward_step({call.partition('(')[0].removesuffix('.forward')}, x)"
        in done.code.partition("train_step(net, ")[2]
    )


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("for step in range(9):\n    x = torch.cat([x, other(x)[-1:]])\n", id="in a loop without updates"),
        pytest.param(f"for step in range(9):\n{STEP}\nprint(other(x))\n", id="behind the loop"),
    ],
)
def test_what_is_called_elsewhere_is_not(rest: str) -> None:
    done = translate(HEAD + rest)
    assert not done.gaps
    assert "other(x)" in done.code
    assert "forward(" not in done.code


APART = """\
import torch
from torch import nn

CLASS
def train_step(model: nn.Module, x, optimizer):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_step(model: torch.nn.Module, x):
    model.eval()
    with torch.inference_mode():
        return model(x).square().mean().item()


def train(model, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        print(train_step(model, X, optimizer), test_step(model, X))


X = torch.randn(5, 3)
train(MADE, 4)
"""
PLAIN = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.f = nn.Linear(3, 3)\n\n"
)
FORWARD = "    def forward(self, x):\n        return self.f(x)\n\n\n"


def test_modules_that_are_only_known_to_be_some_are_followed_to_what_made_them() -> None:
    code = translate(APART.replace("CLASS", PLAIN + FORWARD).replace("MADE", "Net()")).code
    assert "bound_jit(eval_step, model)(x)" in code.partition("def test_step")[2]
    assert "forward_graph" not in code


@pytest.mark.parametrize("does", [pytest.param("print(x.shape)", id="prints"), pytest.param("self.x = x", id="keeps")])
def test_what_made_them_says_whether_they_can_be_compiled(does: str) -> None:
    forward = FORWARD.replace("return", f"{does}\n        return")
    code = translate(APART.replace("CLASS", PLAIN + forward).replace("MADE", "Net()")).code
    assert "forward(model" not in code and "forward_graph(" not in code
