"""Functions that bind the modules and optimizers of their calls, where these are the same objects in the same mode."""

from __future__ import annotations

import re
from typing import Any

import pytest

from t2j_lsp.translate import translate

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.norm, self.l2 = nn.Linear(4, 8), nn.{norm}(8), nn.Linear(8, 1)
        self.scale = 1.0

    def forward(self, x):
        return self.scale * self.l2(torch.tanh(self.norm(self.l1(x))))
"""
HEAD = """\
import torch
from torch import nn


{net}

def train(net, optimizer, criterion):
    {mode}for x in batches:
        optimizer.zero_grad()
        loss = criterion(net(x), torch.ones(4, 1))
        loss.backward()
        optimizer.step()
    seen.append(loss.item())


def evaluate(net, criterion):
    {evaluating}with torch.no_grad():
        return criterion(net(batches[0]), torch.ones(4, 1)).item()


torch.manual_seed(0)
batches = torch.linspace(-1, 1, 48).reshape(3, 4, 4) ** 2
seen = []
"""
MADE = "model = Net()\noptimizer = torch.optim.Adam(model.parameters(), lr=0.05)\ncriterion = nn.MSELoss()\n"
LOOP = """\
for epoch in range(6):
    train(model, optimizer, criterion)
    seen.append(evaluate(model, criterion))
"""


def program(rest: str, norm: str = "LayerNorm", mode: str = "", evaluating: str = "") -> str:
    lines = [f"{line}\n    " if line else "" for line in (mode, evaluating)]
    return HEAD.format(net=NET.format(norm=norm), mode=lines[0], evaluating=lines[1]) + rest


BINDING = "nnx.jit_partial(functools.partial(step, **static), *modules, graph=False)"
UNBOUND = "lambda *arrays: nnx.jit(functools.partial(step, **static))(*modules, *arrays)"


def bound(text: str) -> list[str]:
    """The functions of a conversion that bind what they are called with."""
    done = translate(text)
    assert not done.gaps, done.gaps
    calls = set(re.findall(r"\bbound_jit\((\w+)", done.code))
    return [name for name in re.findall(r"^def (\w+)", done.code, re.MULTILINE) if name in calls]


@pytest.mark.jax
@pytest.mark.parametrize(
    "text",
    [
        program(MADE + LOOP),
        program(MADE + LOOP, "BatchNorm1d", "net.train()", "net.eval()"),
        program(
            MADE
            + LOOP
            + "    with torch.no_grad():\n        model.l1.weight.mul_(0.5)\n"
            + "    for group in optimizer.param_groups:\n        group['lr'] = 0.05 / (epoch + 1)\n"
        ),
        program(MADE + LOOP + "    if epoch == 2:\n        criterion = nn.L1Loss()\n"),
        program(MADE + LOOP + "other = Net()\nseen.append(evaluate(other, criterion))\n" + LOOP),
    ],
    ids=["one mode", "two modes", "other weights and rates", "another criterion", "another module"],
)
def test_bound_calls_compute_what_the_unbound_ones_do(text: str) -> None:
    code = translate(text).code
    assert bound(text) == ["train_step", "eval_step"] and BINDING in code
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec(code.replace(BINDING, UNBOUND), both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-4) and len(set(both[0]["seen"])) > 6


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        (program(MADE + LOOP, "BatchNorm1d"), ["train_step", "eval_step"]),
        (
            program(MADE + LOOP + "model.eval()\nseen.append(model(batches[0]).sum())\n", "BatchNorm1d"),
            ["train_step", "eval_step"],
        ),
        (program(MADE + LOOP + "    model.eval()\n", "BatchNorm1d"), []),
        (program(MADE + LOOP + "    for part in model.children():\n        part.eval()\n", "BatchNorm1d"), []),
        (program(MADE + LOOP + "model.eval()\n" + LOOP, "BatchNorm1d"), []),
        (program(MADE + LOOP, "BatchNorm1d", "net.train()", "net.norm.eval()"), ["train_step"]),
        (program(MADE + LOOP, "BatchNorm1d", "", "net = net.eval()"), ["eval_step"]),
        (program(MADE + LOOP, "BatchNorm1d", "net.train()", "net.train()\n    net.norm.eval()"), ["train_step"]),
        (program(MADE + LOOP + "    model.scale = 0.5 * model.scale\n"), []),
        (program(MADE + LOOP + "    setattr(model, 'scale', 0.5)\n"), []),
        (program("for fold in range(2):\n    " + (MADE + LOOP).replace("\n", "\n    ").rstrip() + "\n"), []),
    ],
    ids=[
        "modes that are never set",
        "a mode behind all steps",
        "a mode behind each epoch",
        "modes of all parts",
        "a mode between two loops",
        "a mode in front of the steps",
        "a mode in front of the pass",
        "a part in another mode",
        "a number of the module changes",
        "an attribute changes by its name",
        "modules of each fold",
    ],
)
def test_what_may_change_is_looked_at_in_each_call(text: str, functions: list[str]) -> None:
    assert bound(text) == functions


@pytest.mark.parametrize(
    "change",
    ["model.append(nn.Linear(1, 1))", "model[0] = nn.Linear(4, 8)", "del model[1]", "model.add_module('x', nn.Tanh())"],
)
def test_modules_that_grow_are_looked_at_in_each_call(change: str) -> None:
    made = MADE.replace("Net()", "nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))")
    assert bound(program(made + LOOP)) == ["train_step", "eval_step"]
    assert "bound_jit" not in translate(program(f"{made}{LOOP}    {change}\n")).code


def test_a_wrapper_of_a_module_is_as_the_module() -> None:
    apart = MADE.replace("model = Net()", "net = Net()\nmodel = nn.DataParallel(net)")
    wrapped = MADE.replace("Net()", "nn.DataParallel(Net())")
    for made in (apart, wrapped):
        assert bound(program(made + LOOP)) == ["train_step", "eval_step"]
        assert bound(program(f"{made}{LOOP}    model.module.scale = 0.5\n")) == []


def test_a_wrapper_and_what_it_wraps_are_not_bound_together() -> None:
    together = """\
import torch
from torch import nn

net = nn.Linear(4, 4)
model = nn.DataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, net, x):
    optimizer.zero_grad()
    loss = (model(x) - net(x).detach()).square().mean()
    loss.backward()
    optimizer.step()


for _ in range(3):
    step(model, net, torch.ones(2, 4))
"""
    assert "graph=False" not in translate(together).code


def test_an_agent_that_is_made_once_binds_its_steps() -> None:
    agent = """\
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self, x):
        loss = self.net(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


agent = Agent()
for _ in range(3):
    agent.learn(torch.ones(2, 4))
"""
    assert bound(agent) == ["train_step"]
    assert bound(f"{agent}Agent().learn(torch.ones(2, 4))\n") == []
    assert bound(agent.replace("agent = Agent()\nfor _", "for _").replace("    agent.", "    Agent().")) == []


TIE = "self.l2.weight = self.l1.weight"
TIED_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.norm, self.l2 = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)
        {tie}

    def forward(self, x):
        {first}
        return self.l2(self.norm(self.l1(x)))[:, :1]
"""


def tied(tie: str = TIE, first: str = "pass", behind: str = "") -> str:
    return HEAD.format(net=TIED_NET.format(tie=tie, first=first), mode="", evaluating="") + MADE + LOOP + behind


@pytest.mark.jax
@pytest.mark.parametrize("tie", [TIE, "self.l2 = self.l1", "self.both = nn.Sequential(self.l1, self.l2)"])
def test_modules_that_share_variables_are_bound_as_graphs(tie: str) -> None:
    code = translate(tied(tie)).code
    assert "bound_jit_graph(train_step, net, optimizer" in code and "bound_jit(" not in code
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec(code.replace(BINDING.replace("graph=False", "graph=True, graph_updates=False"), UNBOUND), both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-4) and len(set(both[0]["seen"])) > 6
    weights = [both[0]["model"].l1.kernel, both[0]["model"].l2.kernel]
    assert (weights[0] is weights[1]) != ("both" in tie)


@pytest.mark.jax
@pytest.mark.parametrize("initial", ["pass", "self.last = None", "self.last = torch.zeros(1)", "self.last = 0"])
@pytest.mark.parametrize("tie", ["pass", TIE])
def test_values_that_nothing_reads_make_no_difference(initial: str, tie: str) -> None:
    text = tied(f"{tie}\n        {initial}", "self.last = x.mean()", "    model(torch.ones(2, 4))\n")
    code = translate(text).code
    assert ("bound_jit_graph(" if tie == TIE else "bound_jit(") in code
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    options = "graph=True, graph_updates=False" if tie == TIE else "graph=False"
    exec(code.replace(BINDING.replace("graph=False", options), UNBOUND), both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-4) and len(set(both[0]["seen"])) > 6


@pytest.mark.parametrize(
    "text",
    [
        tied(first="x, self.last = x + (getattr(self, 'last', 0)), x"),
        tied(f"{TIE}; self.seen = []", "self.seen.append(1)"),
        tied(f"{TIE}; self.scale = 1.0", "x = x * self.scale", "    model.scale = 0.5 * model.scale\n"),
        tied(behind="    model.eval()\n"),
        tied(behind="    setattr(model, 'scale', 0.5)\n"),
    ],
    ids=["an attribute", "a list", "a number between the steps", "a mode", "an attribute by its name"],
)
def test_graphs_that_change_are_looked_at_in_each_call(text: str) -> None:
    assert "bound_jit" not in translate(text).code
