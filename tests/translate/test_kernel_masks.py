"""Layers that multiply their weight with a mask, as PixelCNN's and MADE's: whose ``mask`` it is, what is trained."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state

HEAD = "import torch\nfrom torch import nn\n\n\n"
MASKED = (
    HEAD + "class Masked(nn.{layer}):\n"
    "    def __init__(self):\n"
    "        super().__init__({sizes})\n"
    "        self.register_buffer('mask', torch.ones_like(self.weight))\n"
    "        self.mask[:, 1:] = 0\n\n"
    "    def forward(self, x):\n"
    "        self.weight.data *= self.mask\n"
    "        return {call}\n"
)


@pytest.mark.parametrize("call", ["super().forward(x)", "super(Masked, self).forward(x)"])
@pytest.mark.parametrize(("layer", "sizes", "name"), [("Conv1d", "2, 3, 2", "kernel_mask"), ("Linear", "4, 3", "mask")])
def test_the_weight_is_masked_and_its_gradient_is_not(layer: str, sizes: str, name: str, call: str) -> None:
    translation = convert(MASKED.format(layer=layer, sizes=sizes, call=call))
    assert not translation.gaps
    assert f"self.{name} = Buffer(" in translation.code
    spaces: tuple[dict, dict] = ({}, {})  # type: ignore[type-arg]
    exec(MASKED.format(layer=layer, sizes=sizes, call=call), spaces[0])
    exec(translation.code, spaces[1])
    torch_side, jax_side = spaces[0]["Masked"](), spaces[1]["Masked"](rngs=nnx.Rngs(0))
    load_torch_state(jax_side, torch_side.state_dict())
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4) + 1
    y = torch_side(torch.from_numpy(x)).sum()
    y.backward()
    value, gradient = nnx.value_and_grad(lambda module: module(jnp.asarray(x)).sum())(jax_side)
    assert np.allclose(value, y.item(), atol=1e-5)
    (kernel,) = (leaf for path, leaf in jax.tree.leaves_with_path(gradient) if "kernel" in str(path[0]))
    assert np.allclose(np.sort(np.ravel(kernel)), np.sort(np.ravel(torch_side.weight.grad.numpy())), atol=1e-5)


@pytest.mark.parametrize("other", ["def f(layer):\n    return layer.mask\n", "NAME = 'mask'\n", "kernel_mask = 1\n"])
def test_a_mask_that_something_else_may_read_is_a_gap(other: str) -> None:
    text = MASKED.format(layer="Conv1d", sizes="2, 3, 2", call="super().forward(x)")
    (gap,) = convert(f"{text}\n\n{other}").gaps
    assert gap.reason.startswith("Flax's layer keeps something of its own")
