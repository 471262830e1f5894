"""State dicts in and out of what target ``jax`` holds: nested dicts and lists under PyTorch's names."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch
from torch import nn

from t2j_lsp import convert, load_torch_state, torch_state
from t2j_lsp.weights import WeightsError

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.register_buffer("shift", torch.zeros(1))

    def forward(self, x):
        return x + self.norm(self.conv(x)) + self.shift


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(width * 9, 5))
        self.gain = nn.Parameter(torch.ones(5))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x) * self.gain
"""


@pytest.fixture(scope="module")
def sides() -> tuple[nn.Module, dict[str, Any]]:
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    converted: dict[str, Any] = {}
    exec(convert(SOURCE, target="jax").code, converted)
    torch.manual_seed(0)
    net = space["Net"]()
    with torch.no_grad():
        for value in net.state_dict().values():
            if value.dtype.is_floating_point:
                value.uniform_(0.5, 1.5)
    return net.eval(), converted


def test_a_state_dict_goes_in_and_comes_back(sides: tuple[nn.Module, dict[str, Any]]) -> None:
    net, converted = sides
    params, state = load_torch_state(converted["init_net"](jax.random.key(0)), net.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 4, 3, 3)).astype(np.float32)
    out, after = converted["net"](params, state, x)
    np.testing.assert_allclose(out, net(torch.tensor(x)).detach(), rtol=2e-4, atol=2e-4)
    back = torch_state((params, after))
    assert list(back) == list(torch_state((params, state)))
    assert set(back) == set(net.state_dict())
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(back[name], value.numpy())
    net.load_state_dict({name: torch.from_numpy(value) for name, value in back.items()}, strict=True)


def test_what_does_not_fit_is_said_and_nothing_is_changed(sides: tuple[nn.Module, dict[str, Any]]) -> None:
    net, converted = sides
    given = dict(net.state_dict())
    given["extra"] = given.pop("gain")
    made = converted["init_net"](jax.random.key(0))
    before = torch_state(made)
    with pytest.raises(WeightsError) as caught:
        load_torch_state(made, given)
    assert caught.value.missing == ("gain",) and caught.value.unexpected == ("extra",)
    after = torch_state(made)
    assert all((before[name] == after[name]).all() for name in before)


def test_gradients_are_taken_of_the_parameters_alone(sides: tuple[nn.Module, dict[str, Any]]) -> None:
    _, converted = sides
    params, state = converted["init_net"](jax.random.key(0))

    def loss(params: Any) -> Any:
        return converted["net"](params, state, np.ones((2, 4, 3, 3), np.float32), train=True)[0].sum()

    grads = jax.grad(loss)(params)
    assert jax.tree.structure(grads) == jax.tree.structure(params)
    assert not [name for name in torch_state(grads) if "running" in name or "shift" in name]
