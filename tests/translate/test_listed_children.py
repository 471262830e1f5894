"""Lists of a module's children name them: Flax's modules have none in an order."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width, norm=None):
        super().__init__()
        self.size = 2 * width
        self.stem = nn.Conv2d(3, width, 3)
        self.act = nn.ReLU()
        self.body = nn.Sequential(nn.Conv2d(width, self.size, 3), nn.BatchNorm2d(self.size))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(self.size, 5)

    def forward(self, x):
        return self.fc(self.pool(self.body(self.act(self.stem(x)))).flatten(1))


class User(nn.Module):
    def __init__(self):
        super().__init__()
        net = Net(2)
        {}

    def forward(self, x):
        return self.part(x)
"""
LISTS = {
    "a slice that is spread": (
        "self.part = nn.Sequential(*list(net.children())[:-1])",
        "nnx.Sequential(net.stem, net.act, net.body, net.pool)",
    ),
    "all that is spread": (
        "net.fc = nn.Flatten()\n        self.part = nn.Sequential(*net.children())",
        "nnx.Sequential(net.stem, net.act, net.body, net.pool, net.fc)",
    ),
    "a list of its own": (
        "parts = list(net.children())[:3]\n        self.part = nn.Sequential(*parts)",
        "parts = [net.stem, net.act, net.body]",
    ),
    "one child": ("self.part = list(net.children())[-5]", "self.part = net.stem"),
    "a step": (
        "self.part = nn.Sequential(*list(net.children())[:-2:2])",
        "nnx.Sequential(net.stem, net.body)",
    ),
}
UNKNOWN = {
    "a part that the constructor may not make": ("self.pool = nn", "if width: self.pool = nn"),
    "one of unknown kind": ("nn.AdaptiveAvgPool2d(1)", "norm[width]"),
    "one that two attributes hold": ("self.size =", "self.again = self.act\n        self.size ="),
    "one that two attributes are given": ("self.act =", "self.again = self.act ="),
    "one variable for two": (
        "self.size =",
        "one = nn.ReLU()\n        self.b = one\n        self.c = one\n        self.size =",
    ),
    "one under any name": ("self.size =", "setattr(self, str(width), nn.ReLU())\n        self.size ="),
}


@pytest.mark.parametrize("name", ["a slice that is spread", "one child"])
def test_what_is_made_of_them_is_pytorchs(name: str) -> None:
    both = sides(NET.replace("{}", LISTS[name][0]), "listed_children")
    image = np.random.default_rng(0).normal(size=(2, 3, 7, 7))
    with jax.enable_x64(True):
        compare(randomized(both.torch.User()), both.jax.User(rngs=nnx.Rngs(0)), [image])


@pytest.mark.parametrize("name", LISTS)
def test_the_children_have_names(name: str) -> None:
    body, wanted = LISTS[name]
    translation = convert(NET.replace("{}", body))
    assert not translation.gaps
    assert wanted in translation.code


@pytest.mark.parametrize("name", UNKNOWN)
def test_where_it_is_not_sure_which_they_are_it_is_said(name: str) -> None:
    before, after = UNKNOWN[name]
    text = NET.replace("{}", LISTS["a slice that is spread"][0]).replace(before, after, 1)
    assert any("children" in gap.name for gap in convert(text).gaps)


@pytest.mark.parametrize(
    "change",
    [
        "net.extra = nn.ReLU()",
        "del net.fc",
        "net.fc = None",
        "net.fc = width",
        "net.add_module('a', nn.ReLU())",
        "setattr(net, 'a', nn.ReLU())",
        "other = net\n        other.extra = nn.ReLU()",
    ],
)
def test_children_that_the_file_changes_are_not_known(change: str) -> None:
    body = f"{change}\n        {LISTS['a slice that is spread'][0]}"
    assert any("children" in gap.name for gap in convert(NET.replace("{}", body)).gaps)


def test_a_long_list_has_a_line_for_each() -> None:
    text = NET.replace("net =", "the_network_of_another_one =").replace(
        "{}", "self.part = nn.Sequential(*list(the_network_of_another_one.children())[:-1])"
    )
    code = convert(text).code
    assert "\n            the_network_of_another_one.stem,\n            the_network_of_another_one.act,\n" in code
