"""Methods of the class that a module derives from, handed to a function: ``each(x, super().forward)``."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, sides

HEAD = "import torch\nfrom torch import nn\n\n\n"
EACH = "def each(x, apply):\n    return torch.stack([apply(x[t]) for t in range(x.shape[0])])\n\n\n"
LAYERS = """class Steps(nn.Sequential):
    def forward(self, x: torch.Tensor):
        return each(x, super().forward)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight


class Derived(Base):
    def forward(self, x: torch.Tensor):
        return each(x, super().forward)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = Steps(nn.Linear(3, 3), nn.ReLU())
        self.derived = Derived()

    def forward(self, x: torch.Tensor):
        return self.derived(self.steps(x))
"""


def test_the_forward_pass_of_a_base_is_handed_over() -> None:
    both = sides(HEAD + EACH + LAYERS, "base_methods")
    assert both.gaps() == []
    assert "each(x, super().__call__)" in both.translation.code
    x = np.random.default_rng(0).normal(size=(4, 2, 3))
    with jax.enable_x64(True):
        compare(both.torch.Net().double(), both.jax.Net(rngs=nnx.Rngs(0)), [x], jit=True)


@pytest.mark.parametrize(
    ("name", "gap"), [("state_dict", True), ("named_parameters", True), ("scale", False), ("__repr__", False)]
)
def test_a_method_that_flax_has_not_is_a_gap(name: str, gap: bool) -> None:
    text = "class Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return torch.relu(x)\n\n"
    gaps = [g.name for g in convert(HEAD + text + f"    def ask(self, of):\n        return of(super().{name})\n").gaps]
    assert gaps == ([f"torch.nn.Module.{name}"] if gap else [])
