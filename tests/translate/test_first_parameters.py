"""The first parameter or buffer of a module, asked for what all have in common, or whether there is one."""

from __future__ import annotations

import pytest

from .convert import run
from .side_by_side import sides

PROGRAM = """\
from itertools import chain

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(2, 3))


class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))


class Empty(nn.Module):
    def forward(self, x):
        return x


def exists(v):
    return v is not None


def device_of(m: nn.Module):
    first = next(chain(m.parameters(), m.buffers()), None)
    if not exists(first):
        return None
    return first.device


def kind_of(m: nn.Module):
    first = next(m.parameters(), None)
    return torch.int32 if first is None else first.dtype


def count(one: nn.Module, other: nn.Module):
    return sum(p.numel() for p in chain(one.parameters(), other.parameters()))


made = [device_of(m) is None for m in (Layer(), Moved(), Empty())] + [count(Layer(), Layer())]
made += [str(torch.zeros(1, dtype=kind_of(m)).dtype).replace("torch.", "") for m in (Layer(), Moved(), Empty())]
"""


def test_what_all_have_in_common_is_asked_of_any() -> None:
    pair = sides(PROGRAM, "first_parameters")
    assert not pair.gaps()
    assert pair.jax.made == pair.torch.made
    assert "return jax.devices()[0]" in pair.translation.code


@pytest.mark.parametrize(
    "use",
    [
        "return first.shape",
        "return None if first is None else first.mean()",
        "return first",
        "if first is None:\n        return 0\n    return first.sum()",
        "return first is m.weight",
        "return look(first)",
    ],
)
@pytest.mark.parametrize("walk", ["m.parameters()", "chain(m.parameters(), m.buffers())"])
def test_the_first_of_all_is_another_in_flax(use: str, walk: str) -> None:
    source = (
        "from itertools import chain\n"
        "def look(v):\n    print(v)\n    return v is None\n"
        f"def f(m: nn.Module):\n    first = next({walk}, None)\n    {use}\n"
    )
    assert any("order" in gap.reason for gap in run(source).gaps)


def test_a_list_of_two_walks_has_an_order() -> None:
    source = (
        "from itertools import chain\n"
        "def f(m: nn.Module, o: nn.Module):\n    return list(chain(m.parameters(), o.parameters()))\n"
    )
    assert len(run(source).gaps) == 2
