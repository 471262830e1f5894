"""What compiled code would do once: a forward pass that prints or draws outside of JAX runs as Python at each call."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import random
import torch
from torch import nn
from torch.utils.data import DataLoader

class Stem(nn.Module):
    def forward(self, x):
        {inside}
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}
    def look(self, x):
        return self.stem(x)
    def forward(self, x):
        return self.body(x) if hasattr(self, "body") else self.fc({called}(x))

net = Net()
optimizer = {optimizer}
for x, y in DataLoader(torch.zeros(8, 3)):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for x, y in DataLoader(torch.zeros(8, 3)):
    print(net(x).sum())
"""
SGD = "torch.optim.SGD(net.parameters(), lr=0.1)"
NAMED = "self.stem, self.fc = Stem(), nn.Linear(3, 1)"
LISTED = "self.body = nn.Sequential(Stem(), nn.Linear(3, 1))"
MORE = """\
class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        self.more = nn.Linear(3, 3)
"""
PRINT = 'print("stem", x.shape, flush=True)'


def program(inside: str, made: str = NAMED, called: str = "self.stem", optimizer: str = SGD) -> str:
    return TEXT.format(inside=inside, made=made, called=called, optimizer=optimizer)


@pytest.mark.parametrize(("made", "called"), [(NAMED, "self.stem"), (NAMED, "self.look"), (LISTED, "self.fc")])
def test_a_forward_pass_that_prints_is_not_compiled(made: str, called: str) -> None:
    """PyTorch prints at each call; a compiled function prints when it is traced."""
    done = convert(program(PRINT, made, called))
    assert not done.gaps
    assert "nnx.jit" not in done.code
    assert "def train_step(net, optimizer, x, y)" in done.code
    assert any("isn't compiled" in note.reason and "prints" in note.reason for note in done.findings)


def test_one_that_prints_nothing_is_compiled() -> None:
    done = convert(program("x = x * 2"))
    assert "nnx.jit" in done.code
    assert "forward_graph(net, x)" in done.code


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("if (x > 5).any():\n            x = x.clamp(max=5)", "(x > 5).any() decides"),
        ("assert not torch.isnan(x).any()", "not torch.isnan(x).any() decides"),
        ("x = x if x.shape[0] and x.sum() > 1 else -x", "x.shape[0] and x.sum() > 1 decides"),
        ("x = x * int(x.abs().max())", "int() takes values out"),
    ],
)
def test_a_forward_pass_that_asks_for_an_arrays_value_is_not_compiled(inside: str, reason: str) -> None:
    """ActNorm's `if not self.initialized`, MoCo's `int(self.queue_ptr)`: a tracer has none, and the step died."""
    done = convert(program(inside))
    assert not done.gaps
    assert "nnx.jit" not in done.code
    assert any("isn't compiled" in note.reason and reason in note.reason for note in done.findings)


HELD = """\
import numpy as np
import torch
from torch import nn

def of(x, t):
    return torch.from_numpy(np.cos(t)) + x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.grid, self.size = nn.Linear(3, 3), np.arange(3.0), 3

    def forward(self, x):
        return self.fc({value})

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net(torch.ones(2, 3)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("value", "compiled"),
    [
        ("x * torch.from_numpy(np.sqrt(self.grid)).float()", False),
        ("of(x, self.grid)", False),
        ("x[:, : int(self.grid[-1]) + 1]", False),
        ("x * torch.from_numpy(self.grid).float()", True),
        ("x * float(np.sqrt(self.size))", True),
        ("x * float(np.sqrt(self.grid.shape[0]))", True),
        ("of(x, np.arange(3.0))", True),
    ],
)
def test_numpy_cant_compute_with_an_array_that_a_module_holds_under_jit(value: str, compiled: bool) -> None:
    """NNX passes arrays in attributes to compiled code: N-BEATS' grids died there."""
    done = convert(HELD.format(value=value))
    assert not done.gaps
    assert ("nnx.jit" in done.code) == compiled


def test_one_that_asks_for_shapes_is_compiled() -> None:
    assert "nnx.jit" in convert(program("if x.ndim == 2 and int(x.shape[0]) > 1:\n            x = x * 2")).code


def test_a_print_of_values_has_none_where_gradients_are_traced() -> None:
    done = convert(program("print(x)"))
    assert [gap.reason for gap in done.gaps if "prints an array" in gap.reason]


def test_a_draw_may_leave_parameters_out_of_a_step() -> None:
    """Those stay as they are in PyTorch; optax would move them on by their momentum."""
    draw = "x = self.more(x) if random.random() < 0.5 else 2 * x"
    text = program(draw).replace("class Stem(nn.Module):\n", MORE)
    assert not convert(text).gaps
    adam = convert(text.replace(SGD, "torch.optim.Adam(net.parameters())"))
    assert any("drawn once under jit" in gap.reason for gap in adam.gaps)
    momentum = convert(text.replace(SGD, SGD.replace("lr=0.1", "lr=0.1, momentum=0.9")))
    assert any("drawn once under jit" in gap.reason for gap in momentum.gaps)


DECODED = """\
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 2)
        {made}

    def forward(self, x, more=None):
        {inside}
        return torch.tanh(self.fc(x))

decoder = Decoder()
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for epoch in range(3):
    x, loss = torch.ones(1, 3), 0
    for i in range(4):
        x = decoder({given})
        loss = loss + decoder.out(x).square().mean()
        if x[0, 0].item() > 0.2:
            break
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def decoded(made: str = "", inside: str = "", given: str = "x") -> str:
    return convert(DECODED.format(made=made, inside=inside, given=given)).code


def test_forward_passes_of_a_step_that_is_not_compiled_are_compiled() -> None:
    code = decoded(made="self.rate = 0.5")
    assert "x = forward(decoder, x)\n" in code and "forward(decoder.out, x)" in code
    assert "@nnx.jit" not in code.partition("def train_step")[0].rpartition("\n\n")[2]


@pytest.mark.parametrize(
    ("made", "inside", "given"),
    [
        ("self.seen = []", "self.seen.append(x.shape)", "x"),
        ("self.count = 0", "self.count += 1", "x"),
        ("", "print(x.shape)", "x"),
        ("", "", "x, more=x"),
        ("", "x = x * (more or 1)", "x, i"),
    ],
)
def test_forward_passes_that_change_more_than_arrays_are_not(made: str, inside: str, given: str) -> None:
    assert "forward(decoder," not in decoded(made, inside, given)
