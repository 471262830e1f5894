"""Modules with a ``load_state_dict`` of their own, which loads by ``super()`` what it leaves of the state."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert

from .side_by_side import sides

SOURCE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


class Encoder(Net):
    def load_state_dict(self, state_dict, **kwargs):
        state_dict.pop("head.weight", None)
        return super().load_state_dict(state_dict, **kwargs)


class Strict(Net):
    def load_state_dict(self, state_dict, strict=True):
        return super().load_state_dict({k: v * 2 for k, v in state_dict.items()}, strict)
"""


@pytest.mark.parametrize("name", ["Encoder", "Strict"])
def test_an_own_method_loads_what_it_leaves_of_the_state(name: str) -> None:
    both = sides(SOURCE, "own_state_loading")
    assert not both.gaps() and "return load_state_dict(self, " in both.translation.code
    net, converted = getattr(both.torch, name)(), getattr(both.jax, name)(rngs=nnx.Rngs(0))
    state = {"fc.weight": torch.randn(2, 3), "fc.bias": torch.randn(2)}
    more = {**state, "head.weight" if name == "Encoder" else "tail.weight": torch.randn(4)}
    strict = name == "Encoder"
    assert net.load_state_dict(dict(more), strict=strict) == converted.load_state_dict(
        {k: np.asarray(v) for k, v in more.items()}, strict=strict
    )
    x = torch.randn(5, 3)
    np.testing.assert_allclose(converted(np.asarray(x)), net(x).detach(), rtol=1e-6, atol=1e-6)
    for module in (net, converted):
        with pytest.raises(RuntimeError, match="tail"):
            module.load_state_dict({**{k: np.asarray(v) for k, v in state.items()}, "tail.weight": np.ones(4)})


def test_keywords_that_are_handed_on_are_noted() -> None:
    """PyTorch takes ``assign`` too, at which what is called in its place raises."""
    assert [note.span.line for note in convert(SOURCE).notes if "strict=" in note.message] == [17]


@pytest.mark.parametrize(
    ("said", "owner"),
    [
        ("super().load_state_dict(state_dict, assign=True)", "self"),
        ("super().load_state_dict(*state_dict)", "self"),
        ("other.load_state_dict(state_dict)", "other: nn.Module"),
    ],
)
def test_what_is_not_sure_is_a_gap(said: str, owner: str) -> None:
    """Other keywords; and a module that may be of the class whose method does more."""
    head, _, _ = SOURCE.partition("class Strict")
    inside = f"    def load_state_dict(self, state_dict):\n        {said}\n"
    outside = f"def load({owner}, state_dict):\n    {said}\n"
    done = convert(head + (f"class Own(Net):\n{inside}" if owner == "self" else outside))
    assert [gap.name for gap in done.gaps] == ["torch.nn.Module.load_state_dict"]
