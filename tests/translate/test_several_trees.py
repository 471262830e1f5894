"""Train steps of several modules are compiled as trees where no two can share a variable; those of arrays by JAX."""

from __future__ import annotations

import re
from typing import Any

import pytest

from t2j_lsp.translate import translate

CLASSES = """\
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(4, n)
        self.drop = nn.Dropout(0.2)
        self.norm = nn.BatchNorm1d(n)

    def forward(self, x):
        return torch.tanh(self.norm(self.drop(self.fc(x))))


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.inner(x))


"""
SCRIPT = """\
torch.manual_seed(0)
first = Net()
second = Net()
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
x = torch.linspace(-1, 1, 32).reshape(8, 4)
losses = []
for step in range(4):
    optimizer.zero_grad()
    noise = torch.randn(8, 4)
    loss = F.mse_loss(second(first(x) + noise), x)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
FUNCTION = """\
def train(first, second, optimizer, x):
    for step in range(4):
        optimizer.zero_grad()
        loss = F.mse_loss(first(x), second(x))
        loss.backward()
        optimizer.step()


one, other = Net(), Net()
train({given}, torch.optim.SGD(one.parameters(), lr=0.1), torch.ones(8, 4))
"""
TRAINER = """\
class Trainer:
    def __init__(self):
        self.first = Net()
        self.second = Net()
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.SGD([*self.first.parameters(), *self.second.parameters()], lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.criterion(self.second(self.first(x)), x)
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer = Trainer()
{between}
print(trainer.step(torch.ones(8, 4)))
"""


def code_of(source: str) -> str:
    done = translate(CLASSES + source)
    assert not done.gaps, done.gaps
    return done.code


BOUND = "= nnx.jit_partial(train_step, first, second, "


@pytest.mark.jax
def test_several_modules_and_random_state_train_alike_in_both_ways() -> None:
    code = code_of(SCRIPT)
    assert BOUND in code
    tree: dict[str, Any] = {}
    graph: dict[str, Any] = {}
    exec(code, tree)
    walked, changed = re.subn(
        r"(nnx\.jit_partial\(train_step, .*)graph=False\)", r"\1graph=True, graph_updates=False)", code
    )
    assert changed == 1
    exec(walked, graph)
    assert tree["losses"] == pytest.approx(graph["losses"], rel=1e-5)
    for name in ("first", "second"):
        means = [one[name].norm.mean[...] for one in (tree, graph)]
        assert abs(means[0]).max() > 0 and means[0].tolist() == pytest.approx(means[1].tolist(), abs=1e-6)


MADE = "second = Net()\n"


@pytest.mark.parametrize(
    "made", [MADE, "second = copy.deepcopy(first)\n", "second = Net() if torch.rand(1) > 2 else Net()\n"]
)
def test_modules_that_different_calls_make_are_apart(made: str) -> None:
    assert BOUND in code_of(SCRIPT.replace(MADE, made))


@pytest.mark.parametrize(
    "made",
    [
        "second = first\n",
        "second = Around(first)\n",
        "both = [first, Net()]\nsecond = both[torch.randint(0, 2, (1,)).item()]\n",
        f"{MADE}\n\ndef tie():\n    global second\n    second = first\n\n\ntie()\n",
        f"{MADE}second.fc = first.fc\n",
    ],
)
def test_modules_that_may_share_a_variable_are_a_graph(made: str) -> None:
    assert "@nnx.jit(graph=False)" not in code_of(SCRIPT.replace(MADE, made))


@pytest.mark.parametrize(("given", "apart"), [("one, other", True), ("one, one", False)])
def test_modules_that_a_function_is_given_are_followed_to_its_calls(given: str, apart: bool) -> None:
    assert ("graph=False" in code_of(FUNCTION.format(given=given))) == apart


@pytest.mark.parametrize(("between", "apart"), [("", True), ("trainer.second = trainer.first", False)])
def test_a_trainer_has_trees_unless_its_modules_are_set_from_outside(between: str, apart: bool) -> None:
    code = code_of(TRAINER.format(between=between))
    assert ('@nnx.jit(static_argnames="criterion", graph=False)' in code) == apart


ARRAYS = """\
import torch

w = torch.randn(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=0.1)
x, y = torch.ones(5, 3), torch.ones(5)
for step in range(3):
    optimizer.zero_grad()
    loss = ((x @ w + b - y{more}) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def test_steps_of_arrays_are_compiled_by_jax() -> None:
    code = translate(ARRAYS.format(more="")).code
    assert "@jax.jit\ndef train_step(w, b, opt_state, x, y):" in code
    assert "jax.value_and_grad(loss_fn, argnums=(0, 1))(w, b)" in code


def test_a_step_of_arrays_that_draws_takes_random_state() -> None:
    code = translate(ARRAYS.format(more=" + torch.rand(5)")).code
    assert "@nnx.jit" in code and "@jax.jit" not in code
