"""What a compiled step is handed as an array, and what jit would do once that PyTorch does each time."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import random

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.cell = nn.GRUCell(4, 4)
        self.out = nn.Linear(4, 9)

    def start(self):
        return Variable(torch.zeros(1, 4))

    def noise(self):
        return {drawn}

    def forward(self, token, hidden):
        hidden = self.cell(self.embed(token.view(1)), hidden)
        return self.out(hidden * self.noise()), hidden


net = Net()
optimizer = torch.optim.Adam(net.parameters())
criterion = nn.CrossEntropyLoss()


def pair():
    tokens = torch.randint(0, 9, (6,))
    return tokens[:-1], tokens[1:]


def train(tokens, targets):
    hidden = net.start()
    optimizer.zero_grad()
    loss = 0
    for i in range(len(tokens)):
        scores, hidden = net(tokens[i], hidden)
        loss += criterion(scores, targets[i].view(1))
    loss.backward()
    optimizer.step()
    return loss.item() / len(tokens)


print(train(*pair()))
"""


def test_what_is_only_asked_for_its_length_is_an_array() -> None:
    done = convert(TEXT.format(drawn="1.0"))
    assert not done.gaps
    assert "static_argnames" not in done.code
    assert "def train_step(net, optimizer, tokens, targets)" in done.code


@pytest.mark.parametrize("drawn", ["random.random()", "np.random.beta(1, 1)", "random.choice([1.0, 2.0])"])
def test_a_forward_pass_that_draws_outside_of_jax_is_not_compiled(drawn: str) -> None:
    """Under jit the number would be the same in every step."""
    done = convert(TEXT.format(drawn=drawn))
    assert not done.gaps and "@nnx.jit" not in done.code
    assert any("isn't compiled" in one.reason and "is drawn once under jit" in one.reason for one in done.findings)
    line = next(number for number, text in enumerate(done.source.splitlines(), 1) if f"return {drawn}" in text)
    assert [f.code for f in done.findings if f.span.line == line] == ["value-needed"]


def test_a_seed_is_no_draw() -> None:
    done = convert(TEXT.format(drawn="1.0").replace("net = Net()", "random.seed(0)\nnp.random.seed(0)\nnet = Net()"))
    assert not done.gaps and all(finding.code != "value-needed" for finding in done.findings)


ROWS = """\
import numpy as np
import torch
import torch.nn as nn

net = nn.Linear(3, 2)
rows = np.ones((8, 3), dtype=np.float32)
x, y = torch.from_numpy(rows), torch.zeros(8, dtype=torch.long)
both = (x.clone(), y.clone())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    order = np.random.permutation(8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy({taken})
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("taken", "passed"),
    [
        ("net(x[order]), y[order]", "train_step(x[order], y[order])"),
        ("net(x[order]), y.int()[order]", "train_step(x[order], y.astype(jnp.int32)[order])"),
        ("net((x, y)[0][order]), y[order]", None),
        ("net(both[0][order]), both[1][order]", "train_step(both[0][order], both[1][order])"),
        ("net(torch.from_numpy(rows[order])), y", "train_step(jnp.asarray(rows[order]), y)"),
        ("net(torch.tensor(rows)), y", "train_step(jnp.array(rows), y)"),
    ],
)
def test_arrays_of_numpy_become_arrays_before_the_step(taken: str, passed: str | None) -> None:
    done = convert(ROWS.format(taken=taken))
    assert bool(done.gaps) == (passed is None)
    assert passed is None or passed in done.code.replace("\n    ", "")


BETWEEN = """\
import numpy as np
import torch
import torch.nn as nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, old, log = torch.rand(8, 3), torch.rand(8, 1), []
for i in range(4):
    ratio = net(x) / old
    with torch.no_grad():
        {measured}
    weight = torch.rand(8, 1)
    if i > 1:
        {chosen}
    loss = (weight * ratio).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(log)
"""


def test_what_is_measured_in_front_of_the_loss_waits_for_the_step() -> None:
    """CleanRL's PPO: the clipped part of the ratio, between the forward pass and the loss."""
    done = convert(BETWEEN.format(measured="log += [(ratio > 1).float().mean().item()]", chosen="weight = weight - 1"))
    assert not done.gaps
    step = done.code.index("ratio = train_step(x, old, weight)")
    assert done.code.index("weight = weight - 1") < step < done.code.index("log += ")


def test_what_minds_its_place_is_told() -> None:
    assert convert(BETWEEN.format(measured="print(ratio.mean())", chosen="print(i)")).gaps


TARGETS = """\
import torch
from torch import nn

net, fixed = nn.Linear(3, 3), nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.rand(4, 8, 3):
    out = net(x)
    x = x / 2
    {target}
    loss = (out - want).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def test_what_is_made_of_a_changed_input_for_the_loss_is_made_in_the_step() -> None:
    """The features of the content, in fast neural style: `x` gets a new value behind the forward pass."""
    done = convert(TARGETS.format(target="want = fixed(x)"))
    assert not done.gaps
    step = done.code[done.code.index("def train_step") : done.code.index("for x in")]
    assert step.index("out = net(x)") < step.index("x = x / 2") < step.index("want = fixed(x)")


def test_what_prints_in_front_of_the_loss_is_told() -> None:
    done = convert(TARGETS.format(target="if len(x) > 3:\n        want = fixed(x)\n        print(want.sum())"))
    assert any("it prints" in gap.reason for gap in done.gaps)


def test_columns_of_a_batch_are_arrays_of_numpy() -> None:
    """A replay buffer's `map(np.array, zip(*batch))`: what is made of them is passed, no static argument."""
    taken = "net(torch.tensor(inputs)), torch.tensor(labels)"
    drawn = "    inputs, labels = map(np.array, zip(*pairs))\n    optimizer.zero_grad()"
    text = ROWS.format(taken=taken).replace("    optimizer.zero_grad()", drawn)
    done = convert(text.replace("for i", "pairs = [(row, 1) for row in rows]\nfor i"))
    assert not done.gaps and "static_argnames" not in done.code
    assert "train_step(jnp.array(inputs), jnp.array(labels))" in done.code


def test_a_list_of_numbers_is_passed_as_one_array() -> None:
    text = ROWS.format(taken="net(x), torch.tensor(labels)").replace("for i", "labels = [1, 0] * 4\nfor i")
    done = convert(text)
    assert not done.gaps and "train_step(x, jnp.array(labels))" in done.code


def test_an_array_of_numpy_that_the_loss_computes_with_is_told() -> None:
    done = convert(ROWS.format(taken="net(x * rows[order]), y"))
    assert any("an array of numpy" in gap.reason for gap in done.gaps), [g.reason for g in done.gaps]


@pytest.mark.parametrize("drawn", ["np.random.beta(0.2, 0.2)", "np.random.uniform()", "np.random.rand()"])
def test_a_number_that_numpy_draws_is_an_argument(drawn: str) -> None:
    """Mixup: the share is drawn before each step."""
    done = convert(
        ROWS.format(taken="net(lam * x), y").replace(
            "    optimizer.zero_grad()", f"    lam = {drawn}\n    optimizer.zero_grad()"
        )
    )
    assert not done.gaps, [g.reason for g in done.gaps]
    assert "lam" in done.code[done.code.index("def train_step(") :].partition(")")[0]


@pytest.mark.parametrize("drawn", ["np.random.beta(0.2, 0.2, 4)", "np.random.uniform(size=4)", "np.random.rand(4)"])
def test_several_are_an_array_of_numpy(drawn: str) -> None:
    done = convert(
        ROWS.format(taken="net(lam * x), y").replace(
            "    optimizer.zero_grad()", f"    lam = {drawn}\n    optimizer.zero_grad()"
        )
    )
    assert any("an array of numpy" in gap.reason for gap in done.gaps)
