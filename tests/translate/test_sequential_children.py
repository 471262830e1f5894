"""Children of a Sequential that are read at a number: nnx.Sequential has them in a list. Else the copy stays."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides
from .test_regressions import equal

HEAD = "import torch\nfrom torch import nn\n\n\n"
STACK = "model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4))\n"


def test_both_programs_read_the_same_child() -> None:
    both = sides(
        HEAD + STACK + "shown = model(torch.ones(5, 2)) * model[-1].bias\nprint(model[0].in_features)\n", "children"
    )
    assert not both.gaps() and "Sequential(nnx.Sequential):" not in both.translation.code
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(5, 2))
        compare(randomized(both.torch.model), both.jax.model, [x])
    assert both.jax.model.layers[0].in_features == both.torch.model[0].in_features
    assert both.jax.shown.shape == tuple(both.torch.shown.shape)


@pytest.mark.parametrize(
    "read", ["last = model[-1]\nprint(last.bias)\n", "print(model[0].weight, model[2].out_features)\n"]
)
def test_a_script_reads_them_as_well(read: str) -> None:
    code = convert(HEAD + STACK + read).code
    assert "model = nnx.Sequential(" in code and "model.layers[" in code and "model[" not in code


KEPT = {
    "a slice": "print(model[:1])\n",
    "a number that is computed": "for i in range(3):\n    print(model[i].weight)\n",
    "a child that is exchanged": "model[0] = nn.Linear(2, 3)\nprint(model[1])\n",
    "a length": "print(len(model), model[0].weight)\n",
    "parameters of a part": "print(list(model[0].parameters()))\n",
    "a part that is frozen": "model[0].weight.requires_grad = False\n",
    "code that may become a step": "for x in torch.ones(3, 2):\n    print(model[0](x))\n",
    "a function": "def f(x):\n    return model[0](x)\n\n\nprint(f(torch.ones(2)))\n",
    "a module that others import": "first = model[0]\n",
    "children by names": "named = nn.Sequential({'a': nn.Linear(2, 3)})\nprint(model[0].weight, named[0].weight)\n",
}


def test_a_class_that_other_files_may_read_keeps_its_methods() -> None:
    source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.head = nn.Sequential(nn.Linear(5, 4), nn.Tanh())\n\n    def forward(self, x):\n"
    source += "        return self.head(x) * self.head[0].bias\n\n\nprint(Net()(torch.ones(1, 5)))\n"
    code = convert(HEAD + source).code
    assert "self.head = IndexedSequential(" in code and "self.head[0].bias" in code


@pytest.mark.parametrize("name", KEPT)
def test_where_more_is_asked_the_class_with_its_methods_stays(name: str) -> None:
    code = convert(HEAD + STACK + KEPT[name]).code
    if name == "children by names":
        assert "named = Sequential(" in code and "named[0]" in code and "model.layers[0]" in code
    else:
        assert "model = IndexedSequential(" in code and "model.layers" not in code


WALKED = """class Stack(nn.Sequential):
    def forward(self, x):
        for layer in self._modules.values():
            x = layer(x)
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))

    def forward(self, x):
        kept = []
        for name, layer in self.features._modules.items():
            x = layer(x)
            if name in ("0", "2"):
                kept.append(x)
        for layer in reversed(self.features._modules.values()):
            x = layer(x)
        return x + sum(kept)
"""


def test_the_dict_of_a_sequentials_children_is_the_sequential() -> None:
    both = sides(HEAD + WALKED + "\n\nstack = Stack(nn.Linear(3, 3), nn.Tanh())\nnet = Net()\n", "walked")
    assert not both.gaps() and "_modules" not in both.translation.code
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(5, 3))
        compare(randomized(both.torch.stack), both.jax.stack, [x])
        compare(randomized(both.torch.net), both.jax.net, [x])


@pytest.mark.parametrize(
    "made", ["nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.ReLU()))", "nn.ModuleDict({'a': nn.ReLU()})", "other()"]
)
def test_names_that_are_none_of_numbers_are_left(made: str) -> None:
    text = f"{HEAD}from collections import OrderedDict\nfrom a import other\n\nnet = {made}\n"
    assert convert(text + "for name, layer in net._modules.items():\n    print(name, layer(torch.ones(2)))\n").gaps


OWN = """class A(nn.{base}):
    def __init__(self, n=4):
        super().__init__({first})
        {lines}
{forward}"""
FORWARD = "\n    def forward(self, x):\n        {}\n"
ATTRIBUTES = {
    "steps": ("", "self.fc = nn.Linear(n, n)\n        self.act = nn.Tanh()", ""),
    "a step of several": ("", "self.parts = nn.Sequential(nn.Linear(n, n), nn.Tanh())", ""),
    "one more": ("nn.Linear(n, n)", "self.more = nn.Linear(n, n)", FORWARD.format("return super().forward(x) + 1")),
    "parts of a pass of its own": ("", "self.a = nn.Linear(n, n)", FORWARD.format("return self.a(x) * 2")),
    "several at once": ("", "self.a, self.b = nn.Linear(n, n), nn.Tanh()", ""),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_a_class_of_sequential_are_steps_of_it(name: str) -> None:
    """Also where nothing else asks for methods of the copied class."""
    first, lines, forward = ATTRIBUTES[name]
    text = OWN.format(base="Sequential", first=first, lines=lines, forward=forward)
    equal(HEAD + text, f"own_{name.replace(' ', '_')}", 2, 4)


@pytest.mark.parametrize(
    ("base", "lines"),
    [("ModuleList", "self.head = nn.Linear(n, n)"), ("Sequential", "self.a = self.b = nn.Linear(n, n)")],
)
def test_a_child_that_flax_would_not_see_is_a_gap(base: str, lines: str) -> None:
    text = OWN.format(base=base, first="", lines=lines, forward="")
    assert [gap.name for gap in convert(HEAD + text).gaps] == ["Module.__setattr__"]
