"""Loops over the parameters of two modules in pairs: what treats all elements alike is the same in Flax's layouts."""

from __future__ import annotations

import re
import textwrap

import pytest

from t2j_lsp import convert

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


def mixed(old, new, d):
    if old is None:
        return new
    return old * d + (1 - d) * new


a, b, d = Net(), Net(), 0.9
"""


def body(code: str) -> tuple[str, int]:
    """The last line of what becomes of the statements behind the head, and how many gaps they have."""
    done = convert(HEAD + textwrap.dedent(code))
    last = done.code.rstrip().rpartition("\n")[2].strip()
    return re.sub(r"lax\.stop_gradient\((\w\[\.\.\.\])\)", r"\1", last), len(done.gaps)


PAIRS = "for p, q in zip(a.parameters(), b.parameters()):\n    "


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("p.data.mul_(d).add_(q.data, alpha=1 - d)", "p[...] = p[...] * d + (1 - d) * q[...]"),
        ("p.data.copy_(d * q.data + (1.0 - d) * p.data)", "p[...] = d * q[...] + (1.0 - d) * p[...]"),
        ("p.data = p.data * d + q.data * (1 - d)", "p[...] = p[...] * d + q[...] * (1 - d)"),
        ("old, new = p.data, q.data\n    p.data = mixed(old, new, d)", "p[...] = mixed(old, new, d)"),
    ],
)
def test_an_average_is_taken_in_flaxs_layouts(code: str, expected: str) -> None:
    assert body(PAIRS + code) == (expected, 0)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(PAIRS + "p.data = q.data @ q.data", id="a product of matrices"),
        pytest.param(PAIRS + "p.data = q.data.T.contiguous()", id="a transpose"),
        pytest.param("w = torch.ones(2, 3)\n" + PAIRS + "p.data = q.data * w", id="a tensor in PyTorch's layout"),
        pytest.param("c = nn.Linear(3, 2)\nfor p, q in zip(a.parameters(), c.parameters()):\n    p.data.copy_(q.data)",
                     id="modules of two classes"),
        pytest.param("def of(old, new):\n    return old.flip(0)\n\n\n" + PAIRS + "p.data = of(p.data, q.data)",
                     id="a function that moves elements"),
    ],
)  # fmt: skip
def test_what_needs_pytorchs_layouts_is_a_gap(code: str) -> None:
    assert body(code)[1]
