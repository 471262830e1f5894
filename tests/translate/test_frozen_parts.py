"""Parts that their module's constructor freezes: their parameters are buffers, which nothing trains."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp.api import convert

SOURCE = """
import torch
from torch import nn


class Fourier(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Sequential(nn.Linear(1, dim), nn.LayerNorm(dim))
        self.proj.requires_grad_(False)
        self.out = nn.Linear(dim, 2)

    def forward(self, x):
        return self.out(torch.cos(self.proj(x[..., None])))
"""


def model(code: str) -> Any:
    names: dict[str, Any] = {}
    exec(code, names)
    return names["Fourier"](4, rngs=nnx.Rngs(0))


def test_its_parameters_are_none_to_gradients_and_optimizers() -> None:
    translation = convert(SOURCE)
    assert not translation.gaps and "freeze(self.proj)" in translation.code
    fourier = model(translation.code)
    trained = nnx.to_flat_state(nnx.state(fourier, nnx.Param))
    assert {path[0] for path, _ in trained} == {"out"}
    assert len(jax.tree.leaves(nnx.state(fourier.proj))) == 4
    grads = nnx.grad(lambda m: m(jnp.ones((3, 2))).sum())(fourier)
    assert {path[0] for path, _ in nnx.to_flat_state(grads)} == {"out"}


def test_they_are_counted_among_the_parameters() -> None:
    counted = "\n    def count(self):\n        return sum(p.numel() for p in self.parameters())\n"
    fourier = model(convert(SOURCE + counted).code)
    assert fourier.count() == 4 + 4 + 4 + 4 + 4 * 2 + 2


@pytest.mark.parametrize(
    "method",
    [
        "self.proj.requires_grad_(True)",
        "return [p for p in self.proj.parameters()]",
        "return self.proj.state_dict()",
        "self.proj = x",
        "for p in self.parameters():\n            p.requires_grad = True",
    ],
)
def test_what_else_is_done_with_them_leaves_it_to_the_user(method: str) -> None:
    translation = convert(f"{SOURCE}\n    def other(self, x):\n        {method}\n")
    assert "freeze(" not in translation.code and any("nnx.DiffState" in gap.reason for gap in translation.gaps)


def test_a_part_that_is_frozen_later_is_a_gap() -> None:
    later = SOURCE.replace("        self.proj.requires_grad_(False)\n", "")
    later += "\n    def stop(self):\n        self.proj.requires_grad_(False)\n"
    assert "freeze(" not in convert(later).code and convert(later).gaps


IMAGE = """
import torch
from torch import nn


class Features(nn.Module):
    def __init__(self{more}):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
{held}        for p in self.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.conv(x)


torch.manual_seed(0)
image = {image}
net = Features({given})
optimizer = torch.optim.Adam([image], lr=0.1)
for i in range(3):
    optimizer.zero_grad()
    loss = net(image).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    "image", ["nn.Parameter(torch.rand(1, 3, 8, 8))", "torch.rand(1, 3, 8, 8).clone().requires_grad_(True)"]
)
def test_what_a_network_of_frozen_features_is_shown_is_trained(image: str) -> None:
    done = convert(IMAGE.format(more="", held="", image=image, given=""))
    assert not done.gaps and "requires_grad" not in done.code


def test_a_parameter_that_the_frozen_module_holds_is_none_of_its_own() -> None:
    parts = {"more": ", w", "held": "        self.w = w\n", "given": "image"}
    done = convert(IMAGE.format(image="nn.Parameter(torch.rand(1, 3, 8, 8))", **parts))
    assert any("requires_grad" in gap.reason for gap in done.gaps)


@pytest.mark.parametrize("given", ["net.conv.weight", "net.conv.weight.data", "net.conv.weight.detach()"])
def test_a_parameter_with_the_memory_of_a_frozen_one_is_none_of_its_own(given: str) -> None:
    """PyTorch's optimizer writes into the module."""
    text = IMAGE.format(more="", held="", image="torch.rand(1, 3, 8, 8)", given="")
    text = text.replace("optimizer =", f"image = nn.Parameter({given})\noptimizer =").replace(
        "net(image)", "(net(x) * image.sum())"
    )
    done = convert(text.replace("torch.manual_seed(0)", "x = torch.rand(1, 3, 8, 8)"))
    assert done.gaps
