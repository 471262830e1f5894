"""``reset_parameters`` of classes that derive from layers: PyTorch's constructors call it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

from t2j_lsp.api import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"
RESET = "    def reset_parameters(self):\n        nn.init.constant_(self.weight, 3.0)\n"
OWN = "    def __init__(self, n):\n        super().__init__(n, n)\n        self.n = n\n{}\n"
DRAWN = "    def reset_parameters(self):\n        nn.init.normal_(self.weight, mean=50.0, std=0.1)\n"
CLASSES = {
    "no constructor": "class Net(nn.Linear):\n" + RESET,
    "a constructor": "class Net(nn.Linear):\n" + OWN.format("") + RESET,
    "one that calls it": "class Net(nn.Linear):\n" + OWN.format("        self.reset_parameters()\n") + RESET,
    "a table": "class Net(nn.Embedding):\n" + RESET,
    "a norm": "class Net(nn.BatchNorm1d):\n" + RESET,
    "a base's": "class Base(nn.Linear):\n" + DRAWN + "\n\nclass Net(Base):\n" + RESET,
}
SIZES = {"a constructor": (4,), "one that calls it": (4,), "a norm": (4,)}


def _net(code: str, *sizes: int) -> Any:
    names: dict[str, Any] = {}
    exec(code, names)
    return names["Net"](*sizes, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("name", CLASSES)
def test_it_gives_the_initial_values(name: str) -> None:
    translation = convert(HEAD + CLASSES[name])
    assert not translation.gaps
    assert translation.code.count("self.reset_parameters()") == 1
    net = _net(translation.code, *SIZES.get(name, (4, 4)))
    filled = [np.asarray(value) for _, value in nnx.to_flat_state(nnx.state(net, nnx.Param))]
    assert any((values == 3.0).all() for values in filled)
    assert convert(translation.code).code == translation.code


def test_it_draws_with_the_generator_of_the_module() -> None:
    net = _net(convert(HEAD + "class Net(nn.Linear):\n" + DRAWN).code, 30, 30)
    values = np.asarray(net.kernel[...])
    assert abs(values.mean() - 50) < 0.1
    assert 0.05 < values.std() < 0.2


@pytest.mark.parametrize("base", ["nn.Module", "nn.Sequential", "nn.ReLU"])
def test_other_modules_do_not_call_it(base: str) -> None:
    text = f"class Net({base}):\n    def reset_parameters(self):\n        self.n = 1\n"
    assert "self.reset_parameters" not in convert(HEAD + text).code


def test_a_constructor_that_calls_the_layers_own_by_name_is_told() -> None:
    text = "class Net(nn.Linear):\n    def __init__(self, n):\n        nn.Linear.__init__(self, n, n)\n\n" + RESET
    assert any("as it is made" in gap.reason for gap in convert(HEAD + text).gaps)


def test_what_fills_the_padding_row_is_told() -> None:
    text = "class Net(nn.Embedding):\n" + RESET + "        self._fill_padding_idx_with_zero()\n"
    assert any("_fill_padding_idx" in gap.name for gap in convert(HEAD + text).gaps)


def test_the_base_s_own_draws_its_values_anew() -> None:
    text = "class Net(nn.Linear):\n    def reset_parameters(self):\n        super().reset_parameters()\n"
    translation = convert(HEAD + text + "        nn.init.ones_(self.bias)\n")
    assert not translation.gaps
    net = _net(translation.code, 100, 50)
    first = np.asarray(net.kernel[...])
    assert np.abs(first).max() <= 0.1 and (np.asarray(net.bias[...]) == 1).all()
    net.kernel[...], net.bias[...] = net.kernel * 0 + 7, net.bias * 0 + 7
    net.reset_parameters()
    again = np.asarray(net.kernel[...])
    assert np.abs(again).max() <= 0.1 < 0.1 + again.std() and (again != first).any()
    assert (np.asarray(net.bias[...]) == 1).all()
