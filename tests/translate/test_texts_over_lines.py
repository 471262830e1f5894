"""Code that stands over several lines and is moved, quoted in a reason, or added to: the output parses and runs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"
MASK = """class Net(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.register_buffer(
            "mask",
            # needed where the numbers of bins differ
            None
            if all(len(x) == len(bins[0]) for x in bins)
            else torch.stack([torch.tensor([float(len(x))]) for x in bins]),
        )

    def forward(self, x):
        return x if self.mask is None else x * self.mask
"""
DEFAULT = """class Net(nn.Module):
    def __init__(
        self,
        sizes=(
            tuple([3, 4])
        ),{more}
    ):
        super().__init__()
        self.fc = nn.Linear(*sizes)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize(("bins", "sums"), [([[1], [2]], 2.0), ([[1], [1, 2]], 3.0)])
def test_a_buffer_that_may_be_none_over_several_lines(bins: list[list[int]], sums: float) -> None:
    space: dict[str, Any] = {}
    exec(convert(HEAD + MASK).code, space)
    net = space["Net"](bins, rngs=nnx.Rngs(0))
    assert float(net(jnp.ones((2, 1))).sum()) == sums


@pytest.mark.parametrize("more", ["", "\n        bias=(\n            True\n        ),"])
def test_a_parameter_is_added_behind_a_default_in_brackets(more: str) -> None:
    space: dict[str, Any] = {}
    exec(convert(HEAD + DEFAULT.format(more=more)).code, space)
    assert space["Net"](rngs=nnx.Rngs(0))(jnp.ones((2, 3))).shape == (2, 4)


def test_a_reason_that_quotes_several_lines_stands_on_one() -> None:
    done = convert(HEAD + "def load(name):\n    return torch.load(\n        f'{name}.pt',\n    ).model.state_dict()\n")
    (gap,) = done.gaps
    assert "\n" not in gap.reason and "f'{name}.pt'" in gap.reason
    assert f"# TODO(t2j): {gap.reason}\n" in done.code
