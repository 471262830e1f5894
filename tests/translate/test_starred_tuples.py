"""Tuples of a known length that are spread over the arguments of a call."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from tests.translate.side_by_side import sides

HEAD = """import torch
import torch.nn as nn


def dims():
    return 0, 1


def f(x: torch.Tensor, ys: list[torch.Tensor]):
    """
BOUNDS = """import numpy as np
import torch
import torch.nn as nn


def bounds(layer):
    limit = 1.0 / np.sqrt(layer.weight.data.size()[0])
    return (-limit, limit)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 400)
        self.second = nn.Linear(400, 100)
        self.reset()

    def reset(self):
        self.first.weight.data.uniform_(*bounds(self.first))
        nn.init.uniform_(self.second.weight, *bounds(self.second))

    def forward(self, x):
        return self.second(self.first(x))
"""


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("return x.transpose(*dims())", "dim0, dim1 = dims()\n    return x.swapaxes(dim0, dim1)"),
        ("return torch.transpose(x, *dims())", "dim0, dim1 = dims()\n    return jnp.swapaxes(x, dim0, dim1)"),
        ("pair = (0.0, 1.0)\n    return x.clamp(*pair)", "min_, max_ = pair\n    return clamp(x, min_, max_)"),
        (
            "dim0 = 3\n    return x.transpose(*dims()) + dim0",
            "dim0_, dim1 = dims()\n    return x.swapaxes(dim0_, dim1) + dim0",
        ),
    ],
    ids=["a method", "a function, behind an argument", "a variable and builtins", "a name that is taken"],
)
def test_the_items_have_the_parameters_names(source: str, written: str) -> None:
    done = convert(HEAD + source + "\n")
    assert not done.gaps
    assert f"    {written}\n" in done.code


@pytest.mark.parametrize(
    "source",
    [
        "return [y.transpose(*dims()) for y in ys]",
        "return x.transpose(*dims()) if x.ndim > 1 else x",
        "return print(x) or x.transpose(*dims())",
        "return ys.pop().transpose(*dims())",
        "return x.addcmul(*ys)",
    ],
    ids=["for each", "in one case", "behind another call, perhaps", "behind another call", "of any length"],
)
def test_a_tuple_is_not_made_sooner_than_it_was(source: str) -> None:
    done = convert(HEAD + source + "\n")
    assert done.gaps and source.replace("torch.", "jnp.") in done.code


def test_weights_are_drawn_between_the_bounds_that_a_function_gives() -> None:
    pair = sides(BOUNDS, "starred_tuples")
    assert not pair.gaps()
    torch.manual_seed(0)
    old, new = pair.torch.Net(), pair.jax.Net(rngs=nnx.Rngs(0))
    for name, limit in (("first", 400**-0.5), ("second", 100**-0.5)):
        drawn = [getattr(old, name).weight.detach().numpy(), np.asarray(getattr(new, name).kernel[...])]
        for values in drawn:
            assert np.abs(values).max() <= limit
            assert np.abs(np.quantile(values, [0.05, 0.5, 0.95]) / limit - [-0.9, 0, 0.9]).max() < 0.12
    assert new(jnp.ones((2, 3))).shape == (2, 100)
