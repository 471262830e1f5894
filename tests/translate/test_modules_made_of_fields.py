"""Modules whose constructor is made of their fields: one of t2j's own would stand in its place."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "from dataclasses import dataclass\nimport torch\nfrom torch import nn\nfrom config import Configurable\n\n\n"
BODY = (
    "    n: int = 3\n\n    def __post_init__(self):\n        super().__init__()\n"
    "        self.lin = nn.Linear(self.n, 4)\n\n    def forward(self, x):\n        return self.lin(x)\n"
)


@pytest.mark.parametrize(
    "head", ["@dataclass\nclass Net(nn.Module):\n", "@dataclass(eq=False)\nclass Net(nn.Module):\n"]
)
def test_a_dataclass_that_is_a_module_is_a_gap(head: str) -> None:
    done = convert(HEAD + head + BODY)
    assert ["write __init__" in gap.reason for gap in done.gaps] == [True]
    assert "def __init__" not in done.code.partition("class Net")[2].partition("def uniform_init")[0]


def test_a_class_whose_base_makes_the_constructor_is_a_gap() -> None:
    gaps = convert(HEAD + "class Net(Configurable, nn.Module):\n" + BODY).gaps
    assert any("write __init__" in gap.reason for gap in gaps)


def test_a_subclass_of_a_dataclass_is_one_too() -> None:
    text = HEAD + "@dataclass\nclass Net(nn.Module):\n" + BODY + "\n\nclass Wide(Net):\n    n: int = 5\n"
    assert len([gap for gap in convert(text).gaps if "write __init__" in gap.reason]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "@dataclass\nclass Config:\n    n: int = 3\n",
        "@dataclass\nclass Config:\n    n: int = 3\n\n    def __post_init__(self):\n        self.n += 1\n",
        "class Net(nn.Module):\n    n: int = 3\n\n    def forward(self, x):\n        return x * self.n\n",
        "@dataclass\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n",
    ],
)
def test_others_are_none(text: str) -> None:
    assert not convert(HEAD.replace("from config import Configurable\n", "") + text).gaps
