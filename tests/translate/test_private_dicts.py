"""What only PyTorch's modules keep: children by name are attributes; other private dicts, bases' methods are told."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .test_regressions import equal

NET = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(2):
            self.add_module(f"fc{{i}}", nn.Linear(4, 4))
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        {}
        return x * self.weight
"""


@pytest.mark.parametrize(
    "body",
    [
        "x = self._modules['fc1'](x)",
        "for i in range(2):\n            x = torch.tanh(self._modules[f'fc{i}'](x))",
        "x = self._modules[f'fc{x.ndim - 1}'](x)",
    ],
)
def test_a_child_by_its_name_is_an_attribute(body: str) -> None:
    equal(NET.format(body), "children_by_name", 2, 4)


@pytest.mark.parametrize(
    "body",
    [
        "for m in self._modules.values(): x = m(x)",
        "x = x * self._parameters['weight']",
        "x = x + len(self._buffers)",
        "self._modules['fc1'] = nn.Linear(4, 4)",
    ],
)
def test_other_uses_of_the_private_dicts_are_told(body: str) -> None:
    assert any("keep no such dict" in gap.reason for gap in convert(NET.format(body)).gaps)


def test_a_class_may_have_an_attribute_of_that_name() -> None:
    own = NET.replace("        self.weight =", "        self._buffers = [1, 2]\n        self.weight =")
    assert not convert(own.format("x = x + len(self._buffers)")).gaps


def test_a_method_of_the_layer_itself_is_the_base_s_alone() -> None:
    source = "import torch\nfrom torch import nn\n\n\nclass A(nn.Linear):\n    def reset_parameters(self):\n"
    source += "        super().reset_parameters()\n        nn.init.zeros_(self.bias)\n"
    assert not convert(source).gaps and "reset_layer(self, self.rngs)" in convert(source).code
    source = source.replace("reset_parameters", "check_input")
    assert any("check_input" in gap.reason for gap in convert(source).gaps)
    below = source + "\n\nclass B(A):\n    def check_input(self):\n        super().check_input()\n"
    assert len(convert(below).gaps) == len(convert(source).gaps)


DEFAULT = """
import torch
from torch import nn


def default(val, d):
    return val if val is not None else (d() if callable(d) else d)


class A(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = default(act, nn.GELU)

    def forward(self, x):
        return self.act(self.fc(x))
"""


def test_what_is_called_where_it_can_be_called_is_what_it_makes() -> None:
    equal(DEFAULT, "called_default", 2, 4)


MIXED_IN = """
from torch import nn


class Mixin:
    def __init__(self, dim):
        self.dim = dim
        {}
        del self._parameters["weight"]


class Net(nn.Linear, Mixin):
    def __init__(self):
        super().__init__(3, 4)
        Mixin.__init__(self, 2)
"""


def test_a_mixin_with_a_constructor_of_its_own_has_no_such_dict_either() -> None:
    assert any("keep no such dict" in gap.reason for gap in convert(MIXED_IN.format("pass")).gaps)
    assert not any("keep no such dict" in gap.reason for gap in convert(MIXED_IN.format("self._parameters = {}")).gaps)
