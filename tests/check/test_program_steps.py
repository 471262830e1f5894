"""Steps of whole programs are counted, and end at the same one on both sides."""

from __future__ import annotations

from t2j_lsp.contract import VerdictKind

from .conftest import Run
from .test_programs import LBFGS, LINEAR


def test_lbfgs_evaluates_its_closure_as_often(run: Run) -> None:
    assert run(LBFGS).verdict is VerdictKind.EQUIVALENT


def test_steps_stop_both_sides_at_the_same_one(run: Run) -> None:
    report = run(LINEAR, steps=7)
    assert (report.verdict, report.steps, report.stopped) == (VerdictKind.EQUIVALENT, 7, True)
    assert report.values["printed"].count == 2
    assert report.values["parameters"].numbers == 3
    report = run(LINEAR, mistake=("lr=0.1", "lr=0.2"), steps=1)
    assert report.verdict is VerdictKind.DIFFERENT


BARE = """\
import torch
import torch.nn as nn

w = torch.zeros(2, 1, requires_grad=True)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.linspace(-1, 1, 12).reshape(6, 2)
optimizer = torch.optim.Adam([w], lr=0.1)
for epoch in range(6):
    optimizer.zero_grad()
    loss = (x @ w - 1).pow(2).mean() + net[:2](x * w.T).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def test_updates_of_bare_tensors_are_counted_and_views_of_modules_are_no_new_ones(run: Run) -> None:
    report = run(BARE)
    assert report.verdict is VerdictKind.EQUIVALENT, report.reason
    report = run(BARE, steps=3)
    assert report.verdict is VerdictKind.EQUIVALENT, report.reason
    assert (report.steps, report.stopped) == (3, True)


LINE_SEARCH = """\
import torch
import torch.nn as nn

net = nn.Linear(2, 1)
x, y = torch.linspace(-1, 1, 12).reshape(6, 2), torch.linspace(0, 1, 6).reshape(6, 1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=2)


def closure():
    optimizer.zero_grad()
    loss = (net(x) - y).pow(2).mean() + net.weight.abs().mean()
    loss.backward()
    return loss


for epoch in range(4):
    print(optimizer.step(closure).item())
"""


def test_a_step_of_lbfgs_is_one_on_both_sides(run: Run) -> None:
    report = run(LINE_SEARCH, steps=2)
    assert (report.verdict, report.steps, report.stopped) == (VerdictKind.EQUIVALENT, 2, True), report.reason
    assert run(LINE_SEARCH, mistake=("lr=0.5", "lr=0.4"), steps=2).verdict is VerdictKind.DIFFERENT


TWO_OPTIMIZERS = """\
import torch
import torch.nn as nn

first, second = nn.Linear(2, 3), nn.Linear(3, 1)
x = torch.linspace(-1, 1, 12).reshape(6, 2)
one = torch.optim.SGD(first.parameters(), lr=0.1)
other = torch.optim.SGD(second.parameters(), lr=0.3)
for epoch in range(6):
    one.zero_grad()
    other.zero_grad()
    loss = (second(torch.tanh(first(x))) - 1).pow(2).mean()
    loss.backward()
    one.step()
    other.step()
    print(loss.item())
"""


def test_steps_that_end_within_a_compiled_step_are_made_to_its_end_on_both_sides(run: Run) -> None:
    report = run(TWO_OPTIMIZERS, steps=3)
    assert (report.verdict, report.steps, report.stopped) == (VerdictKind.EQUIVALENT, 4, True), report.reason
    assert run(TWO_OPTIMIZERS, mistake=("lr=0.3", "lr=0.2"), steps=3).verdict is VerdictKind.DIFFERENT


def test_a_mistake_in_an_update_of_bare_tensors_is_found(run: Run) -> None:
    assert run(BARE, mistake=("lr=0.1", "lr=0.2")).verdict is VerdictKind.DIFFERENT


UNREACHED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc, self.spare = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x + F.gelu(self.fc(x))


class Net(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim) for _ in range(2)])
        self.head, self.bn = nn.Linear(dim, 3), nn.BatchNorm1d(dim)
        self.pos = nn.Parameter(torch.randn(1, dim))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.05, weight_decay=0.5)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
for epoch in range(4):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), net.pos.abs().sum().item(), net.blocks[1].spare.weight.abs().sum().item())
"""


def test_what_no_step_reaches_stays_as_it_is(run: Run) -> None:
    report = run(UNREACHED)
    assert report.verdict is VerdictKind.EQUIVALENT, report.reason
