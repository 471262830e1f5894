"""Parameters that a constructor fills by other names: those of a loop, of a list of lists, of an assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

from t2j_lsp.api import convert

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import Parameter, ParameterList\n\n\n"
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Parameter(torch.randn(2, 3))
        self.b = Parameter(torch.randn(3))
        {}

    def forward(self, x):
        return x @ self.a + self.b
"""
FILLED = {
    "pairs": "for w, value in ((self.a, 1.0), (self.b, 2.0)):\n            nn.init.constant_(w, value)",
    "zip": "for w, value in zip([self.a, self.b], [1.0, 2.0]):\n            nn.init.constant_(w, value)",
    "enumerate": "for i, w in enumerate([self.a, self.b]):\n            nn.init.constant_(w, i + 1.0)",
    "two names": "a, b = self.a, self.b\n        nn.init.constant_(a, 1.0)\n        nn.init.constant_(b, 2.0)",
    "a name": (
        "a = self.a\n        nn.init.constant_(a, 1.0)\n        b = self.b\n        if True:\n"
        "            nn.init.constant_(b, 2.0)"
    ),
}
LISTS = """\
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.weights = ParameterList([
            ParameterList([Parameter(torch.randn(2, 3)), Parameter(torch.randn(3, 2))]) for _ in range(depth)
        ])
        for first, second in self.weights:
            nn.init.constant_(first, 1.0)
            nn.init.constant_(second, 2.0)

    def forward(self, x):
        for first, second in self.weights:
            x = x @ first @ second
        return x
"""
LOST = {
    "an item": "def zero(weights):\n    for w in weights:\n        w.fill_(0.0)\n",
    "one of two": "def zero(pairs):\n    for w, _ in pairs:\n        w.copy_(w * 2).mul_(3.0)\n",
    "its data": "def zero(weights):\n    for w in weights:\n        w.data.zero_()\n",
}
READ = "def doubled(batches, model):\n    for x in batches:\n        x.mul_(2.0)\n        print(model(x))\n"
FLAGS = "def freeze(weights):\n    for w in weights:\n        w.requires_grad_(False)\n"


def _net(code: str, *arguments: int) -> Any:
    names: dict[str, Any] = {}
    exec(code, names)
    return names["Net"](*arguments, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("how", FILLED.values(), ids=FILLED)
def test_what_another_name_fills_is_the_parameter(how: str) -> None:
    translation = convert(HEAD + NET.format(how))
    assert not translation.gaps
    net = _net(translation.code)
    np.testing.assert_array_equal(net.a[...], np.full((2, 3), 1.0))
    np.testing.assert_array_equal(net.b[...], np.full(3, 2.0))
    assert convert(translation.code).code == translation.code


def test_lists_of_parameters_in_a_list_are_filled_where_they_are() -> None:
    translation = convert(HEAD + LISTS)
    assert not translation.gaps
    net = _net(translation.code, 2)
    for first, second in net.weights:
        np.testing.assert_array_equal(first[...], np.full((2, 3), 1.0))
        np.testing.assert_array_equal(second[...], np.full((3, 2), 2.0))


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_what_a_loop_writes_into_items_that_others_hold_is_a_gap(text: str) -> None:
    translation = convert(HEAD + text)
    assert {gap.code for gap in translation.gaps} == {"in-place-shared"}
    assert "whoever made what the loop runs over sees" in translation.gaps[0].reason
    assert text.splitlines()[-1].strip() in translation.code


@pytest.mark.parametrize("text", [READ, FLAGS], ids=["read later", "a flag"])
def test_items_that_the_loop_itself_reads_and_flags_are_none_of_these(text: str) -> None:
    assert not [gap for gap in convert(HEAD + text).gaps if "the loop runs over" in gap.reason]
