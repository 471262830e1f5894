"""Writes into a part of what slices give, which reach the whole; and those into a copy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert

from .side_by_side import sides

HEAD = "import torch\nfrom torch import nn\n\n\n"

VIEWS = [
    ("y[1:][m[1:]] = float('-inf')", "y = y.at[1:].set("),
    ("y[:, 0][i] += 1.5", "y = y.at[:, 0].set(y[:, 0].at[i].set(y[:, 0][i] + 1.5))"),
    ("y[1:, 2][y[1:, 2] > 0] = 0.0", "y = y.at[1:, 2].set(set_where(y[1:, 2], y[1:, 2] > 0, 0.0))"),
    ("y[1:][:2] *= 3", "y = y.at[1:].set(y[1:].at[:2].multiply(3))"),
    ("y[:-1][i] = x[i] + 1", "y = y.at[:-1].set(y[:-1].at[i].set(x[i] + 1))"),
]


@pytest.mark.parametrize(("store", "wanted"), VIEWS, ids=[store for store, _ in VIEWS])
def test_a_write_into_a_part_by_slices_reaches_the_whole(store: str, wanted: str) -> None:
    text = (
        f"{HEAD}def f(x: torch.Tensor, m: torch.Tensor, i: torch.Tensor):\n    y = x * 2\n    {store}\n    return y\n"
    )
    translation = convert(text)
    assert wanted in translation.code
    assert not translation.gaps
    sides: list[dict[str, Any]] = [{}, {}]
    for side, code in zip(sides, (text, translation.code), strict=True):
        exec(code, side)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    given = (x, x > 0.5, np.array([1, 3, 1]))
    wide = sides[0]["f"](*map(torch.from_numpy, given))
    np.testing.assert_allclose(sides[1]["f"](*map(jnp.asarray, given)), wide, rtol=1e-6)


@pytest.mark.parametrize("part", ["y[i]", "y[m]", "y[1:, i]", "y[pick()]"])
def test_a_write_into_a_copy_stays(part: str) -> None:
    head = f"{HEAD}def f(x: torch.Tensor, m: torch.Tensor, i: torch.Tensor, pick):\n    y = x * 2\n"
    (gap,) = convert(f"{head}    {part}[1:] = 0\n    return y\n").gaps
    assert "view or temporary array" in gap.reason


PICKED = {
    "numbers": "y[[0, 2]] = 1.0",
    "a column of numbers": "y[:, [1, 0]] *= 2",
    "a name": "at = [0, 1]\n    y[at] += 3",
    "a range": "y[range(2), [1, 0]] = 5.0",
    "a range by its name": "rows = range(len(y))\n    y[rows, 0] -= 1",
    "numbers behind a slice": "y[1:, [0]] = 4.0",
    "a list that stays empty": (
        "at = []\n    for i in range(len(y)):\n        if i > 9:\n            at.append(i)\n    y[at] = 4.0"
    ),
}


@pytest.mark.parametrize("store", PICKED.values(), ids=PICKED)
def test_stores_into_what_lists_and_ranges_pick(store: str) -> None:
    """JAX takes arrays alone."""
    both = sides(f"import torch\n\n\ndef f(x: torch.Tensor):\n    y = x * 2\n    {store}\n    return y\n", "picked")
    assert both.gaps() == []
    x = np.arange(12.0).reshape(4, 3)
    with jax.enable_x64(True):
        np.testing.assert_allclose(both.jax.f(jnp.asarray(x)), both.torch.f(torch.tensor(x)))


def test_an_index_that_is_a_list_of_numbers_is_an_arrays() -> None:
    """Of what is indexed nothing else is known."""
    text = "import torch\n\n\ndef f(x):\n    return x[[0, 2]], torch.exp(x[:, [1]])\n"
    both = sides(text, "listed")
    x = np.arange(12.0).reshape(4, 3)
    for got, wanted in zip(both.jax.f(jnp.asarray(x)), both.torch.f(torch.tensor(x)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert "x[[0, 2]]" in convert(text.replace("import torch", "import torch, pandas")).code


def test_what_is_written_into_is_no_number_whatever_its_annotation_says() -> None:
    text = "import torch\n\n\ndef f(a: float, b: float):\n    c = a / b\n    c[c != c] = 0.0\n    return c\n"
    both = sides(text, "annotated")
    assert both.gaps() == []
    a, b = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 0.5])
    np.testing.assert_allclose(
        both.jax.f(jnp.asarray(a), jnp.asarray(b)), both.torch.f(torch.tensor(a), torch.tensor(b))
    )


@pytest.mark.parametrize("write", ["x.T[0] = 1", "x.real[0] += 1", "x.mT.fill_(3)"])
def test_a_write_into_a_view_by_its_name_is_said(write: str) -> None:
    assert len(convert(f"import torch\n\n\ndef f(x: torch.Tensor):\n    {write}\n    return x\n").gaps) == 1


@pytest.mark.parametrize(
    "write",
    [
        "x.real = y",
        "x.real, x.imag = y, y * 2",
        "n, (x.imag, m) = 1, (y, 2)",
        "x.imag += y",
        "z = x.real = y",
        "x.scale = 3",
        "x.scale *= 3",
    ],
)
def test_what_is_given_to_a_part_or_an_attribute_of_an_array_is_said(write: str) -> None:
    text = f"import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    {write}\n    return x\n"
    assert [gap.name for gap in convert(text).gaps] == ["Tensor.__setattr__"]


def test_a_part_of_a_buffer_is_said_too() -> None:
    text = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.zeros(3, dtype=torch.complex64))

    def forward(self, x):
        self.c.imag = x
        return x * self.c.imag
"""
    assert [gap.name for gap in convert(text).gaps] == ["Tensor.__setattr__"]
