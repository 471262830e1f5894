"""Functions and methods that write into an array they are given hand it back; their callers go on with it."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

MODEL = '''
import torch
from torch import nn


def blend(image: torch.Tensor, other, share):
    if share > 1:
        return 1.0, "none"
    image[:, :2] = other[:, :2]
    image.mul_(share)
    return share, "some"


class Embed(nn.Module):
    """Adds positions in methods that return nothing."""

    def __init__(self, grid: bool = True):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 3, 4))
        self.grid = grid

    def _add(self, x: torch.Tensor, scale: float) -> None:
        p = self.pos * scale
        x += p

    def _fill(self, x, sizes):
        def size(n):
            return n + 1

        for i, n in enumerate(sizes):
            x[i, : size(n)] += self.pos[0, : size(n)]
        x[:, 0] = 0.5

    def _maybe(self, x: torch.Tensor) -> None:
        if not self.grid:
            return
        x[:, 1].add_(self.pos[:, 1])

    def _both(self, x) -> None:
        self._maybe(x)
        self._fill(x, [0, 1])

    def _row(self, row) -> None:
        row[0] = 2.0

    def forward(self, x):
        x = x * 2
        if self.grid:
            self._add(x, scale=2.0)
        self._both(x)
        share, kind = blend(x, self.pos, share=0.5)
        for i in range(len(x)):
            self._row(x[i])
        return x * share + len(kind)
'''


@pytest.mark.parametrize("grid", [True, False])
def test_what_is_written_is_handed_back(grid: bool) -> None:
    source = MODEL + f"\n\nclass Net(Embed):\n    def __init__(self):\n        super().__init__(grid={grid})\n"
    assert not convert(source).gaps
    made = sides(source, "Net")
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    compare(randomized(made.torch.Net()), made.jax.Net(rngs=nnx.Rngs(0)), [x], tolerance=1e-6)


def test_it_is_written_as_an_expert_would() -> None:
    code = convert(MODEL).code
    assert (
        "def _add(self, x: jax.Array, scale: float) -> jax.Array:\n        p = self.pos * scale\n        x += p\n"
        in code
    )
    assert "x = self._add(x, scale=2.0)" in code
    assert "(share, kind), x = blend(x, self.pos[...], share=0.5)" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("        x = x * 2\n", "        y = x * 2\n        x = y.view(2, 3, 4)\n", id="a view"),
        pytest.param("        x = x * 2\n", "        x = y = x * 2\n", id="another name"),
        pytest.param("self._add(x, scale=2.0)", "self._add(self.pos, scale=2.0)", id="no variable"),
        pytest.param("self._add(x, scale=2.0)", "add = self._add\n            add(x, scale=2.0)", id="a value"),
    ],
)
def test_what_something_else_shares_stays_a_gap(old: str, new: str) -> None:
    source = MODEL.replace(old, new).replace(
        "return x * share", "return y + x * share" if "y" in new else "return x * share"
    )
    assert old in MODEL
    assert any(gap.name == "in-place" for gap in convert(source).gaps)


def test_a_number_that_is_changed_is_the_functions_own() -> None:
    source = MODEL + "\n\ndef up(n):\n    n += 1\n\n\ndef count(n):\n    up(n)\n    return n\n"
    assert "n = up(n)" not in convert(source).code


ITEMS = """\
import torch


def other(x: torch.Tensor):
    y = x.view(-1)
    x.add_(1)
    return y


def collect(held: {kind}, xs: torch.Tensor):
    for i, x in enumerate(xs):
        if held[i] is None:
            held[i] = x
        else:
            held[i] {write}


def user(xs: torch.Tensor):
    held = {made}
    collect(held, xs)
    return held
"""


@pytest.mark.parametrize(
    ("kind", "made"),
    [("list[torch.Tensor | None]", "[None] * 3"), ("dict[int, torch.Tensor | None]", "dict.fromkeys(range(3))")],
)
def test_lists_and_dicts_keep_what_is_written_and_are_not_handed_back(kind: str, made: str) -> None:
    """Where others have the list, too, it would be another one for them, and the function gave nothing."""
    for write in ("+= x", "= held[i] + x"):
        code = convert(ITEMS.format(kind=kind, made=made, write=write)).code
        assert "return held\n\n\ndef user" not in code and "    collect(held, xs)\n" in code


def test_items_that_others_share_are_a_gap() -> None:
    source = "import torch\n\n\ndef up(held: list[torch.Tensor], x: torch.Tensor):\n    held[0] += x\n\n\n"
    source += "def user(a: torch.Tensor, x: torch.Tensor):\n    held = [a]\n    up(held, x)\n    return a + held[0]\n"
    assert any(gap.name == "in-place" for gap in convert(source).gaps)
