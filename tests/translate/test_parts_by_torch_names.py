"""Parts of a module that are asked for by PyTorch's names of them."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    def forward(self, x):
        return self.stem(x)


"""


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("print(Net().get_submodule('stem.0').in_features)", "get_submodule(Net(rngs=rngs), 'stem.0').in_features"),
        ("def part(net: nn.Module, name):\n    return net.get_submodule(name)", "return get_submodule(net, name)"),
        (
            "def part(net: nn.Module, k):\n    m = net.get_submodule(k[:-2])\n    return m.size",
            "get_submodule(net, k[:-2])",
        ),
    ],
)
def test_the_part_is_found(asked: str, wanted: str) -> None:
    result = convert(f"{HEAD}{asked}\n")
    assert not result.gaps and wanted in result.code


def test_a_class_with_such_a_method_has_its_own() -> None:
    source = HEAD.replace(
        "    def forward", "    def get_submodule(self, target):\n        return self.stem\n\n    def forward"
    )
    code = convert(f"{source}print(Net().get_submodule('stem'))\n").code
    assert ".get_submodule('stem')" in code and "get_submodule(Net" not in code


@pytest.mark.parametrize(
    "change", ["setattr(net.get_submodule('stem'), '0', nn.ReLU())", "net.add_module('b', nn.ReLU())"]
)
def test_where_parts_get_others_by_name_it_is_said(change: str) -> None:
    """A Sequential of Flax has its children in a list: an attribute called 0 would change nothing."""
    asked = "print(net.get_submodule('stem.0'))"
    assert convert(f"{HEAD}net = Net()\n{change}\n{asked}\n").gaps
