"""Helpers that each converted file has a copy of: where modules of other files are asked for them, that is a gap."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp.api import convert

BLOCKS = """import torch.nn as nn


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.rnn = nn.LSTM(n, n)

    def forward(self, x):
        return self.rnn(x)[0]


class Plain:
    pass
"""
NET = """import torch.nn as nn
from blocks import Block, Plain


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.block = {made}
        for m in self.modules():
            if isinstance(m, {asked}):
                m.flag = 1

    def forward(self, x):
        return self.block(x)
"""
UTIL = "import torch.nn as nn\n\n\ndef count(net):\n    return sum(isinstance(m, {asked}) for m in net.modules())\n"


def is_gap(source: str, **options: Any) -> bool:
    done = convert(source, resolve=lambda level, name: BLOCKS if name == "blocks" else None, **options)
    return any("of its own" in gap.reason for gap in done.gaps)


@pytest.mark.parametrize("asked", ["nn.LSTM", "(nn.Linear, nn.LSTM)", "nn.PReLU"])
def test_parts_of_other_files_are_none_of_this_ones_helpers(asked: str) -> None:
    assert is_gap(NET.format(made="Block(n)", asked=asked))
    assert is_gap(UTIL.format(asked=asked))
    assert not is_gap(NET.format(made="Block(n)", asked=asked), helpers="import")


@pytest.mark.parametrize("asked", ["nn.Linear", "(nn.Linear, nn.Conv2d)", "nn.BatchNorm1d", "nn.Embedding"])
def test_classes_of_flax_are_the_same_everywhere(asked: str) -> None:
    assert not is_gap(NET.format(made="Block(n)", asked=asked))
    assert not is_gap(UTIL.format(asked=asked))


def test_parts_of_this_file_are_asked_for_its_own() -> None:
    assert not is_gap(NET.format(made="nn.LSTM(n, n)", asked="nn.LSTM"))
    assert not is_gap(UTIL.format(asked="nn.LSTM") + "\n\nprint(count(nn.Sequential(nn.LSTM(2, 2))))\n")


SCORE = """import torch
from torch.distributions import Categorical, Normal


def score(q: torch.distributions.Distribution, y: torch.Tensor):
    if isinstance(q, {asked}):
        return q.log_prob(y)
    raise NotImplementedError
{more}"""
MAKES = "\n\ndef own(y):\n    return score(Normal(y, 1.0), y)\n"


@pytest.mark.parametrize("asked", ["Normal", "(Normal, Categorical)"])
def test_a_distribution_of_another_file_is_none_of_this_ones_copy(asked: str) -> None:
    assert is_gap(SCORE.format(asked=asked, more=""))
    assert not is_gap(SCORE.format(asked=asked, more=""), helpers="import")


def test_distributions_that_the_file_makes_are_its_own() -> None:
    assert not is_gap(SCORE.format(asked="Normal", more=MAKES))


def test_a_divergence_of_two_files_copies_is_found() -> None:
    text = "import torch\nfrom torch.distributions import Normal, kl_divergence\n\n\n"
    text += "def make(m):\n    return Normal(m, 1.0)\n"
    asked = (
        text
        + "\n\ndef between(p, q):\n    return kl_divergence(p, q)\n"
        + "\n\ndef own(m):\n    return between(make(m), make(m))\n"
    )
    sides: list[dict[str, Any]] = [{}, {}]
    for side in sides:
        exec(convert(asked).code, side)
    assert float(sides[0]["between"](sides[0]["make"](1.0), sides[1]["make"](3.0))) == 2.0


@pytest.mark.parametrize("helpers", ["inline", "module", "import"])
@pytest.mark.parametrize("asked", ["nn.ReLU", "nn.MaxPool2d", "(nn.Linear, nn.GELU)"])
def test_what_another_file_has_as_a_function_is_no_instance(asked: str, helpers: str) -> None:
    reason = "may be a function of JAX, which is no instance"

    def is_asked_in_vain(source: str) -> bool:
        done = convert(source, resolve=lambda level, name: BLOCKS if name == "blocks" else None, helpers=helpers)
        return any(reason in gap.reason for gap in done.gaps)

    net = NET.format(made="Block(n)", asked=asked)
    assert is_asked_in_vain(net)
    assert is_asked_in_vain(net.replace("(nn.Module)", "(Block)").replace("self.block = Block(n)", "self.block = n"))
    assert is_asked_in_vain(UTIL.format(asked=asked))
    assert is_asked_in_vain(f"import torch.nn as nn\n\n\ndef one(m):\n    return isinstance(m, {asked})\n")
    assert not is_asked_in_vain(NET.format(made="nn.Tanh()", asked=asked))
    assert not is_asked_in_vain(net.replace("for m in self.modules():", "m = nn.Linear(n, n)\n        if n:"))
