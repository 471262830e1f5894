"""Steps with a closure train the same: of L-BFGS, which evaluates it several times, and of any other optimizer."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

HEAD = """\
import torch
import torch.nn as nn



class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 5)
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


model = Net()
criterion = nn.MSELoss()
torch.manual_seed(0)
x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses = []

# train
"""

CLOSURE = """\
def closure():
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    losses.append(loss.item())
    return loss


"""
STEPS = "for _ in range(3):\n    loss = optimizer.step(closure)\n    losses.append(loss.item())\n"

PROGRAMS = {
    "L-BFGS": "optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)\n\n\n" + CLOSURE + STEPS,
    "L-BFGS with a line search, by keyword": (
        "optimizer = torch.optim.LBFGS(\n    model.parameters(), max_iter=5, history_size=2, "
        "line_search_fn='strong_wolfe'\n)\n\n\n" + CLOSURE + STEPS.replace("(closure)", "(closure=closure)")
    ),
    "L-BFGS of a part": (
        "optimizer = torch.optim.LBFGS(model.last.parameters(), lr=0.1, max_iter=5)\n\n\n" + CLOSURE + STEPS
    ),
    "Adam": "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)\n\n\n" + CLOSURE + STEPS,
    "SGD, whose loss nobody keeps": (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n\n\n"
        + CLOSURE
        + "for _ in range(3):\n    optimizer.step(closure)\n"
    ),
    "clipped gradients": (
        "optimizer = torch.optim.RMSprop(model.parameters(), lr=0.1)\n\n\n"
        + CLOSURE.replace("    return", "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    return")
        + STEPS
    ),
    "a closure for each batch, with its type": """\
def fit(model, loader, epochs):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=2)
    for epoch in range(epochs):
        for inputs, targets in loader:
            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                output = model(inputs)
                loss = criterion(output, targets)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())


fit(model, [(x[:4], y[:4]), (x[4:], y[4:])], 2)
""",
    "a trainer": """\
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.LBFGS(self.model.parameters(), max_iter=3)
        self.calls = 0

    def fit(self):
        for _ in range(3):
            def closure():
                self.optimizer.zero_grad()
                loss = criterion(self.model(x), y)
                loss.backward()
                self.calls += 1
                return loss

            losses.append(self.optimizer.step(closure).item())
            losses.append(self.calls)


Trainer(model).fit()
""",
}


NAMED = PROGRAMS["L-BFGS"].replace("torch.optim.LBFGS", "LBFGS")
LOADED = "from torch.utils.data import DataLoader\n\nloader = DataLoader(x, batch_size=8)\n" + PROGRAMS["L-BFGS"]


@pytest.mark.parametrize("text", ["from torch.optim import LBFGS\n\n" + NAMED, LOADED], ids=["imported", "beside data"])
def test_steps_stay_where_the_file_still_reads_names_of_pytorch(text: str) -> None:
    assert not translate(HEAD + text).gaps


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_trains_the_same(name: str) -> None:
    trained(HEAD + PROGRAMS[name])


OPTIMIZER = "optimizer = torch.optim.LBFGS(model.parameters())\n\n\n"
LEFT = {
    "a closure that is called too": (CLOSURE + STEPS + "print(closure())\n", "is used for more"),
    "gradients that add up": (CLOSURE.replace("    optimizer.zero_grad()\n", "") + STEPS, "aren't zeroed"),
    "a loss that isn't returned": (CLOSURE.replace("    return loss\n", "") + STEPS, "doesn't return the loss"),
    "a lambda": (
        "def closure(x, y):\n    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()\n"
        "    return loss\n\n\noptimizer.step(lambda: closure(x, y))\n",
        "can't be followed",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_sure_stays(name: str) -> None:
    program, reason = LEFT[name]
    reasons = [gap.reason for gap in translate(HEAD + OPTIMIZER + program).gaps]
    assert any(reason in one for one in reasons), reasons


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)\n", "learning rate changes"),
        (
            "torch.optim.LBFGS([{'params': model.first.parameters(), 'lr': 1}, {'params': model.last.parameters()}])\n",
            "no parameter groups",
        ),
    ],
)
def test_what_the_helper_has_not_is_refused(more: str, reason: str) -> None:
    reasons = [gap.reason for gap in translate(HEAD + OPTIMIZER + more).gaps]
    assert any(reason in one for one in reasons), reasons
