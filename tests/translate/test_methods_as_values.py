"""Methods of PyTorch's modules that are read without a call: Flax's modules have none of them, and that is said."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

NET = """
import torch
from torch import nn


def walked(walk):
    return list(walk())


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {}

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize(
    "line",
    [
        "walked(self.modules)",
        "walk = self.fc.named_parameters",
        "self.kids = self.children",
        "self.move = self.fc.cuda if torch.cuda.is_available() else self.fc.cpu",
        "fill = {'apply': self.apply, 'zero': self.zero_grad}",
        "self.load = lambda: self.load_state_dict",
    ],
)
def test_a_method_that_is_not_called_is_a_gap(line: str) -> None:
    reasons = [gap.reason for gap in convert(NET.format(line)).gaps]
    assert reasons and all("it isn't called here" in reason for reason in reasons)


def test_a_method_of_the_files_own_is_none_of_pytorchs() -> None:
    text = NET.format("first = walked(self.children)") + "\n    def children(self):\n        return iter([3])\n"
    assert not convert(text).gaps
    text = NET.format("self.modules = [1, 2]") + "\n    def count(self):\n        return len(self.modules)\n"
    assert not convert(text).gaps


@pytest.mark.parametrize("line", ["mode = self.train", "run = self.fc.forward", "self.on = self.training"])
def test_what_flax_has_too_may_be_read(line: str) -> None:
    assert not convert(NET.format(line)).gaps
