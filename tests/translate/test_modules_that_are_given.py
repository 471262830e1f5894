"""``isinstance(m, nn.Module)`` of what a function is given: activations, functions in JAX, count as modules."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, sides

HEAD = "import torch\nfrom torch import nn\n\n\n"
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = made(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3), nn.Tanh())

    def forward(self, x: torch.Tensor):
        return self.body(x)
"""
WALKS = [
    "[m for m in layers if isinstance(m, nn.Module)]",
    "[m for i, m in enumerate(layers) if isinstance(m, nn.Module)]",
    "[m for m in list(layers) if isinstance(m, nn.Module)]",
    "[layers[i] for i in range(len(layers)) if isinstance(layers[i], nn.Module)]",
]


@pytest.mark.parametrize("walk", WALKS)
def test_an_activation_among_what_is_given_is_kept(walk: str) -> None:
    both = sides(HEAD + f"def made(*layers):\n    return nn.Sequential(*{walk})\n" + NET, "given_modules")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(4, 3))
    with jax.enable_x64(True):
        compare(both.torch.Net().double(), both.jax.Net(rngs=nnx.Rngs(0)), [x], jit=True)


def test_a_loop_over_what_is_given_keeps_activations() -> None:
    loop = "    kept = []\n    for m in layers:\n        if isinstance(m, nn.Module):\n            kept.append(m)\n"
    code = convert(HEAD + f"def made(*layers):\n{loop}    return nn.Sequential(*kept)\n").code
    assert " ".join(code.split()).count("callable(m)") == 1


@pytest.mark.parametrize(
    "text",
    [
        "def count(net: nn.Module):\n    return [m for m in net.modules() if isinstance(m, nn.Module)]\n",
        "def made(sizes):\n    kept = [nn.Linear(3, 3), 4]\n    return [m for m in kept if isinstance(m, nn.Module)]\n",
    ],
)
def test_what_is_not_given_is_asked_as_before(text: str) -> None:
    assert "callable" not in convert(HEAD + text).code
