"""Lists of layers that a constructor fills: `nnx.List`, as NNX takes a plain list for no data."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch.nn as nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.parts = []
        for i in range(depth):
            part = nn.Linear(2, 2)
            setattr(self, f"part{{i}}", part)
            {filled}

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x
"""


@pytest.mark.parametrize("filled", ["self.parts.append(part)", "self.parts.insert(0, part)"])
def test_a_list_that_is_filled_with_layers_is_one_of_nnx(filled: str) -> None:
    done = convert(TEXT.format(filled=filled))
    assert not done.gaps
    assert "        self.parts = nnx.List([])\n" in done.code


def test_one_that_is_filled_with_numbers_stays() -> None:
    assert "        self.parts = []\n" in convert(TEXT.format(filled="self.parts.append(i)")).code


def test_data_of_unknown_items_is_told_in_front_of_what_only_tensors_have() -> None:
    """Without a word the array's ``.data`` would stay, which it has not."""
    source = "import torch\n\ndef show(outs):\n    return {}\n"
    message = convert(source.format("outs[0].data.numpy().ravel()"))
    assert ["jax.lax.stop_gradient" in gap.reason for gap in message.gaps] == [True]
    assert not convert(source.format("outs[0].data.tolist()")).gaps


HIDDEN = """\
import torch.nn as nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x)

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        {statement}

    def forward(self, x):
        return x
"""


@pytest.mark.parametrize(
    ("statement", "hidden"),
    [
        ("self.parts = [nn.Linear(2, 2) for _ in range(depth)]", True),
        ("self.parts = [Block(), Block()]", True),
        ("self.parts = {'a': Block()}", True),
        ("self.parts = []\n        for _ in range(depth):\n            self.parts.append(nn.Linear(2, 2))", True),
        ("self.parts = [self.a, self.b]", False),
        ("self.parts = [nn.ReLU(), nn.Tanh(), nn.Dropout(0.5)]", False),
        ("self.parts = [Block(), Block()]\n        self.all = nn.ModuleList(self.parts)", False),
        ("self.parts = [Block()]\n        self.c = nn.Sequential(nn.Linear(2, 2))", True),
        (
            "part = Block()\n        self.c = nn.ModuleList()\n        self.c.append(part); self.parts = [part]",
            False,
        ),
        ("self.parts = [Block()]\n        self.add_module('part', self.parts[0])", False),
    ],
)
def test_parts_that_pytorch_does_not_know_are_said(statement: str, hidden: bool) -> None:
    """An optimizer of `Net(2).parameters()` doesn't train them in PyTorch, and does in NNX."""
    gaps = convert(HIDDEN.format(statement=statement)).gaps
    assert ["only in a plain list" in gap.reason for gap in gaps] == [True] * hidden
