"""Steps that are bound to their modules and optimizers once, where these stay the same objects in the same mode."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

HEAD = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.norm, self.l2 = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)

    def forward(self, x):
        return self.l2(torch.tanh(self.norm(self.l1(x))))


def evaluate(net, x):
    net.eval()
    with torch.no_grad():
        return net(x).square().mean().item()


torch.manual_seed(0)
x = torch.linspace(-1, 1, 48).reshape(12, 4) ** 2
seen = []
"""
MADE = "model = Net()\noptimizer = torch.optim.Adam(model.parameters(), lr=0.05)\n"
STEP = "optimizer.zero_grad()\n{0}loss = (model(x) - 1).square().mean()\n{0}loss.backward()\n{0}optimizer.step()\n"
LOOP = "for epoch in range(6):\n    " + STEP.format("    ") + "    seen.append(loss.item())\n"
EVALUATED = LOOP.replace("6):\n", "6):\n    model.train()\n") + "    seen.append(evaluate(model, x))\n"
PLAIN = (
    "nnx.jit_partial(train_step, model, optimizer, graph=False)",
    "functools.partial(nnx.jit(train_step), model, optimizer)",
)
BOUND = "train_step = nnx.jit_partial(train_step, model, optimizer, graph=False)"


@pytest.mark.jax
@pytest.mark.parametrize("loop", [LOOP, EVALUATED], ids=["one mode", "evaluated in each epoch"])
def test_a_bound_step_computes_what_the_unbound_one_does(loop: str) -> None:
    code = translate(HEAD + MADE + loop).code
    assert BOUND in code
    plain = code.replace(BOUND, "train_step = functools.partial(nnx.jit(train_step), model, optimizer)")
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec(f"import functools\n{plain}", both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-5)
    means = [one["model"].norm.mean[...].tolist() for one in both]
    assert means[0] == pytest.approx(means[1], abs=1e-6) and max(map(abs, means[0])) > 0


def test_a_function_that_is_called_once_binds_its_step() -> None:
    function = (
        f"def main():\n    {MADE.replace(chr(10), chr(10) + '    ')}{LOOP.replace(chr(10), chr(10) + '    ')}\n\n\n"
    )
    code = translate(f"{HEAD}{function}main()\n").code
    assert "    step = nnx.jit_partial(train_step, model, optimizer, graph=False)\n    for epoch in" in code
    # Another optimizer is another step to compile, so that nothing is lost where each call binds it.
    for calls in ("main()\nmain()\n", "for fold in range(3):\n    main()\n"):
        assert (
            "    step = nnx.jit_partial(train_step, model, optimizer, graph=False)\n"
            in translate(f"{HEAD}{function}{calls}").code
        )


TRAIN = f"def train(model, optimizer):\n    {LOOP.replace(chr(10), chr(10) + '    ')}\n\n\n"
TUNE = TRAIN.replace("(model, optimizer)", "(model, rate)").replace(
    "    for epoch", "    optimizer = torch.optim.Adam(model.parameters(), lr=rate)\n    for epoch"
)
MAKE = "def make():\n    net = Net()\n    return net, torch.optim.Adam(net.parameters())\n\n\n"


@pytest.mark.parametrize(
    ("functions", "calls", "bound"),
    [
        (TUNE, "model = Net()\nfor rate in (0.1, 0.01):\n    train(model, rate)\n", True),
        (TUNE, "for rate in (0.1, 0.01):\n    train(Net(), rate)\n", True),
        (
            TUNE.replace("    for epoch", "    model = Net()\n    for epoch"),
            "train(Net(), 1)\ntrain(Net(), 1)\n",
            False,
        ),
        (MAKE + TRAIN, "model, optimizer = make()\ntrain(model, optimizer)\n" * 2, True),
        (TRAIN, f"{MADE}train(model, optimizer)\n" * 2, True),
        (TRAIN, f"{MADE}train(model, optimizer)\ntrain(model, optimizer)\n", False),
        (TRAIN, f"{MADE}for _ in range(2):\n    train(model, optimizer)\n", False),
        (TRAIN, f"{MADE}train(model, optimizer)\n{MADE}if x.sum() > 0:\n    train(model, optimizer)\n", False),
        (TRAIN, f"{MADE}train(model, optimizer)\n{MADE}train(model, optimizer)\nagain = train\n", False),
    ],
)
def test_functions_that_are_given_another_optimizer_in_each_call_bind_their_step(
    functions: str, calls: str, bound: bool
) -> None:
    code = translate(HEAD + functions + calls).code
    assert ("    step = nnx.jit_partial(train_step, model, optimizer, graph=False)\n" in code) == bound


@pytest.mark.jax
def test_steps_that_each_call_binds_train_alike() -> None:
    code = translate(f"{HEAD}{MAKE}{TRAIN}" + "model, optimizer = make()\ntrain(model, optimizer)\n" * 2).code
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec("import functools\n" + code.replace(*PLAIN), both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-5) and len(set(both[0]["seen"])) == 12


@pytest.mark.parametrize(
    "program",
    [
        MADE + LOOP + "    seen.append(evaluate(model, x))\n",
        MADE + "evaluate(model, x)\n" + EVALUATED,
        MADE
        + EVALUATED.replace(
            "    optimizer.zero", "    for _ in range(2):\n        evaluate(model, x)\n    optimizer.zero"
        ),
        MADE + LOOP.replace("    seen", "    model.norm.eval()\n    seen"),
        "for fold in range(2):\n    " + MADE.replace("\n", "\n    ") + LOOP.replace("\n", "\n    ").rstrip() + "\n",
        MADE + LOOP + "    if epoch == 3:\n        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)\n",
        MADE + "def again():\n    global model\n    model = Net()\n\n\n" + LOOP,
    ],
    ids=[
        "evaluated and never put back",
        "evaluated in front of the loop",
        "evaluated between training mode and step",
        "a part of it is frozen",
        "made in each round of a loop",
        "another optimizer",
        "another module",
    ],
)
def test_what_may_change_is_given_to_each_call(program: str) -> None:
    assert "nnx.jit_partial(train_step" not in translate(HEAD + program).code


HANDED = """\
import torch
from torch import nn

losses = []
model = nn.Linear(3, 1)
scale = nn.Parameter(torch.ones(1) * 2)
shifts = [nn.Parameter(torch.ones(1))]


class Trainer:
    def __init__(self, model):
        self.model, self.scale = model, nn.Parameter(torch.ones(1) * 3)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

    def fit(self):
        for _ in range(3):
            self.optimizer.zero_grad()
            loss = (self.model(torch.ones(4, 3)) * self.scale).square().mean()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())


# train
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = (model(torch.ones(4, 3)) * scale + shifts[0]).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
Trainer(model).fit()
"""


@pytest.mark.jax
def test_a_step_that_is_handed_parameters_that_nothing_updates_is_not_bound() -> None:
    code = trained(HANDED).translation.code
    assert "jit_partial(" not in code and "bound_jit(" not in code


DRAWN = MADE + LOOP.replace("model(x)", "model(x + torch.randn(12, 4))")
DRAWING = "train_step = nnx.jit_partial(train_step, model, rngs, optimizer, graph=False)"


def test_the_generator_is_bound_where_it_is_seeded_once_in_front_of_the_loop() -> None:
    assert DRAWING in translate(HEAD + DRAWN).code


@pytest.mark.parametrize(
    "program",
    [
        HEAD + DRAWN.replace("6):\n", "6):\n    torch.manual_seed(epoch)\n"),
        HEAD + DRAWN + "torch.manual_seed(1)\n",
        HEAD.replace("torch.manual_seed(0)\n", "") + DRAWN,
        HEAD.replace("torch.manual_seed(0)\n", "def seed():\n    torch.manual_seed(0)\n\n\nseed()\n") + DRAWN,
        HEAD.replace("torch.manual_seed(0)\n", "if len('a'):\n    torch.manual_seed(0)\n") + DRAWN,
    ],
    ids=["in the loop", "twice", "never", "in a function", "under a condition"],
)
def test_one_that_may_be_another_is_not(program: str) -> None:
    assert "nnx.jit_partial(train_step, model, rngs" not in translate(program).code


@pytest.mark.jax
def test_a_step_that_binds_the_generator_draws_on() -> None:
    code = translate(HEAD + DRAWN).code
    plain = code.replace(DRAWING, "train_step = functools.partial(nnx.jit(train_step), model, rngs, optimizer)")
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec(f"import functools\n{plain}", both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-5)
    assert int(both[0]["rngs"].default.count[...]) == int(both[1]["rngs"].default.count[...]) > 6
