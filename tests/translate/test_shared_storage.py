"""Writes into what containers, loops, views and attributes share are told; into what nobody else has, they convert."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.translate import translate
from t2j_lsp.weights import load_torch_state

from .side_by_side import sides

HEAD = "import torch\n\n\ndef f(x: torch.Tensor, xs: list[torch.Tensor], flag: bool = True):\n    "
TOLD = {
    "what a name beside others held": (
        "def g(a, b):\n        a += b\n        return b * 2, b\n    y, z = x * 2, x * 3\n    w = y\n"
        "    y, z = g(y, z)\n    return y + z + w"
    ),
    "a name in a case": (
        "match flag:\n        case True:\n            y = x\n            y.add_(1)\n"
        "        case _:\n            y = x * 2\n    return x, y"
    ),
    "a write in a case": "y = x\n    match flag:\n        case True:\n            y.add_(1)\n    return x, y",
    "a write in a case of a loop": (
        "for row in xs:\n        y = row\n        match flag:\n            case True:\n                y.mul_(2)\n"
        "        print(row.sum())"
    ),
    "a write in a handler": (
        "y = x\n    try:\n        print(y)\n    except ValueError:\n        y.add_(1)\n    return x, y"
    ),
    "a read that ends a try": (
        "y = x\n    try:\n        y.add_(1)\n    finally:\n        print(x.sum())\n    return y"
    ),
    "an entry of a dict": "y, kept = x * 2, {}\n    kept['a'] = y\n    y += 1\n    return kept",
    "a dict": "y = x * 2\n    kept = {'a': y}\n    y += 1\n    return kept",
    "a list": "y = x * 2\n    kept = [y]\n    y += 1\n    return kept",
    "a tuple": "y = x * 2\n    out = (y, x)\n    y += 1\n    return out",
    "an insertion": "y, kept = x * 2, []\n    kept.insert(0, y)\n    y += 1\n    return kept",
    "a list that grows": "y, kept = x * 2, []\n    kept += [y]\n    y += 1\n    return kept",
    "a keyword of update": "y, kept = x * 2, {}\n    kept.update(a=y)\n    y += 1\n    return kept",
    "rows": "y = x * 2\n    for row in y:\n        row += 1\n    return y",
    "numbered rows": "y = x * 2\n    for i, row in enumerate(y):\n        row.mul_(i)\n    return y",
    "views in a list": "y = x * 2\n    views = [y[0], y[1]]\n    for v in views:\n        v.mul_(2)\n    return y",
    "views of a comprehension": "y = x * 2\n    for v in [r for r in y]:\n        v.mul_(2)\n    return y",
    "chunks": "y = x * 2\n    for v in y.chunk(2):\n        v.mul_(2)\n    return y",
    "one of several views": "y = x * 2\n    a, b = y[0], y[1]\n    a += 1\n    return y",
    "a row by its number": (
        "y = x * 2\n    for i in range(len(xs)):\n        v = y[i]\n        v[:1] = xs[i][0, :1]\n    return y"
    ),
    "a part by computed numbers": (
        "y = x * 2\n    half = x.shape[0] // 2\n    v = y[half - 1, :1]\n    v.mul_(2)\n    return y"
    ),
    "a row by what may be a number": "y = x * 2\n    n = xs.n\n    v = y[n]\n    v += 1\n    return y",
    "a row by a counter": (
        "y, n = x * 2, 0\n    for v in xs:\n        row = y[n]\n        row.copy_(v[0])\n        n += 1\n    return y"
    ),
    "rows beside others": "y = x * 2\n    for v, w in zip(y, xs):\n        v.copy_(w)\n    return y",
    "an item": "y = x * 2\n    both = [y, x]\n    both[0] += 1\n    return y",
    "an item by its key": "y = x * 2\n    both = {'y': y}\n    both['y'].add_(1)\n    return y",
    "items of a tuple": "y, z = x * 2, x * 3\n    for t in (y, z):\n        t += 1\n    return y, z",
    "values of a dict": "d = {'a': x * 2}\n    for v in d.values():\n        v.mul_(2)\n    return d",
    "entries of a dict": "d = {'a': x * 2}\n    for k, v in d.items():\n        v += 2\n    return d",
    "items of a list": "d = [x * 2, x * 3]\n    for v in d:\n        v += 2\n    return d",
    "items of what is given": "for v in xs:\n        v.mul_(2)\n    return xs",
    "items for the caller": "for v in xs:\n        v.mul_(2)\n    return x",
    "a name for an item": "d = {'h': x * 2}\n    h = d['h']\n    h += 1\n    return d",
    "an attribute": "y = x * 2\n    f.kept = y\n    y += 1\n    return y",
    "a part of what is given": "y = xs.kept\n    y.clamp_(min=0)\n    return y",
    "one of two": "y = x * 2\n    z = y if flag else x\n    z += 1\n    return y",
    "one of two branches": (
        "y = x * 2\n    if flag:\n        z = y\n    else:\n        z = x * 3\n    z += 1\n    return y, z"
    ),
}
CONVERTS = {
    "a copy in a dict": "y = x * 2\n    kept = {'a': y + 1}\n    y += 1\n    return kept['a'] + y",
    "stacked": "y = x * 2\n    kept = torch.stack([y, y])\n    y += 1\n    return kept + y",
    "pieces": "a, b = (x * 2).chunk(2)\n    a += 1\n    return a * b",
    "two items": "d = [x * 2, x * 3]\n    a, b = d\n    a += 1\n    return a * b",
    "a shape": "y = x * 2\n    z = y.view(-1)\n    z += 1\n    return z * y.shape[0]",
    "how many there are": "d = [x * 2, x * 3]\n    a = d[0]\n    a += 1\n    return a * len(d)",
    "the other branch": "y = x * 2\n    z = y\n    if flag:\n        z += 1\n        return z\n    return y",
    "a new name in every round": (
        "out = x\n    for v in xs:\n        v = v * 2\n        v += 1\n        out = out + v\n    return out"
    ),
    "a part of what was made": "pair = torch.max(x, 1)\n    y = pair.values\n    y += 1\n    return y",
    "what takes its own place beside others": (
        "def g(a, b):\n        a += b\n        return a, b * 2\n    y, z = x * 2, x * 3\n    for v in xs:\n"
        "        y, z = g(y, z)\n    return y + z"
    ),
    "what a mask picks": "y = x * 2\n    v = y[:, y.sum(0) > 20]\n    v += 1\n    return y",
    "what numbers in a tensor pick": "y = x * 2\n    v = y[torch.tensor([1, 0])]\n    v += 1\n    return y + v.sum()",
    "what a list of numbers picks": "y = x * 2\n    v = y[[1, 0]]\n    v += 1\n    return y + v.sum()",
    "numbers": "n = m = 0\n    ns = [n]\n    n += 1\n    return x * n + ns[0]",
}  # fmt: skip


@pytest.mark.parametrize("text", TOLD.values(), ids=TOLD)
def test_what_others_hold_is_told(text: str) -> None:
    gaps = translate(HEAD + text + "\n").gaps
    assert [gap.code for gap in gaps] == ["in-place-shared"]


@pytest.mark.parametrize("text", CONVERTS.values(), ids=CONVERTS)
def test_what_nobody_else_holds_converts(text: str) -> None:
    both = sides(HEAD + text + "\n", "shared")
    assert both.gaps() == []
    x, xs = np.arange(8.0).reshape(4, 2), [np.ones((4, 2)), np.full((4, 2), 3.0)]
    for flag in (True, False):
        wanted = both.torch.f(torch.tensor(x), [*map(torch.tensor, xs)], flag)
        np.testing.assert_allclose(both.jax.f(jnp.asarray(x), [*map(jnp.asarray, xs)], flag), wanted)


MODULES = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Rectifies(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(self.act(x))


class Shifts(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        x += 1
        return self.fc(x)


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LeakyReLU(0.1, True), nn.Linear(3, 3))

    def forward(self, x):
        return self.body(x)


def doubled(x: torch.Tensor):
    y = x.view(-1)
    y.mul_(2)
    return y.sum()


def shifted(x):
    x += 1
    return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = PART

    def forward(self, x):
        BODY
"""
CALLS = {
    "a module that rectifies what it is given": ("Rectifies()", "h = self.part(x)\n        return h + x", True),
    "one that adds to it": ("Shifts()", "return x + self.part(x)", True),
    "one whose part does": ("Leaky()", "h = self.part(x)\n        return h * x", True),
    "one in a Sequential": ("nn.Sequential(Shifts(), nn.ReLU())", "h = self.part(x)\n        return h + x", True),
    "a function, through a view": ("nn.Identity()", "h = doubled(x)\n        return self.part(x) + h", True),
    "a function that says nothing of what it is given": (
        "nn.Identity()",
        "h = shifted(x)\n        return self.part(x) + h",
        True,
    ),
    "a number": ("nn.Identity()", "n = x.shape[0]\n        h = shifted(n)\n        return self.part(x) + h + n", False),
    "in a loop": (
        "Shifts()",
        "total = 0\n        for _ in range(2):\n            total = total + self.part(x)\n        return total",
        True,
    ),
    "what is read is another value": ("Rectifies()", "h = self.part(x * 1)\n        return h + x", False),
    "it was read before": ("Shifts()", "y = x * 2\n        h = self.part(x)\n        return h + y", False),
    "the name is bound anew": ("Shifts()", "x = self.part(x)\n        return x * 2", False),
    "its shape alone is read": ("Leaky()", "h = self.part(x)\n        return h * x.shape[0]", False),
    "used before the call in one statement": ("Shifts()", "return x.sum() + self.part(x)", False),
}


@pytest.mark.parametrize(("part", "text", "message"), CALLS.values(), ids=CALLS)
def test_what_a_call_writes_into_is_told_where_it_is_read_later(part: str, text: str, message: bool) -> None:
    gaps = [gap.reason for gap in translate(MODULES.replace("PART", part).replace("BODY", text)).gaps]
    assert any("in place in this call" in reason for reason in gaps) if message else not gaps


RECTIFIED = {
    "the first of a Sequential": ("nn.Sequential(nn.ReLU(True), nn.Linear(3, 3))", "return x + self.part(x)"),
    "a layer": ("nn.ReLU(inplace=True)", "h = self.part(x)\n        return h * 2 + x"),
    "a function": ("nn.Linear(3, 3)", "h = F.relu(x, inplace=True)\n        return self.part(h) + x"),
}


@pytest.mark.jax
@pytest.mark.parametrize(("part", "text"), RECTIFIED.values(), ids=RECTIFIED)
def test_what_is_rectified_in_place_is_rectified_in_front(part: str, text: str) -> None:
    both = sides(MODULES.replace("PART", part).replace("BODY", text), "rectified")
    assert not both.gaps()
    model = both.torch.Net()
    converted = both.jax.Net(rngs=both.jax.nnx.Rngs(0))
    load_torch_state(converted, {k: v.numpy() for k, v in model.state_dict().items()})
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    with torch.no_grad():
        wanted = model(torch.tensor(x)).numpy()
    assert np.allclose(converted(jnp.asarray(x)), wanted, atol=1e-6)


def test_what_something_else_holds_is_not_rectified_in_front() -> None:
    text = "kept = [x]\n        return self.part(x) + x + kept[0]"
    gaps = [gap.reason for gap in translate(MODULES.replace("PART", "nn.ReLU(True)").replace("BODY", text)).gaps]
    assert any("'kept'" in reason or "'x'" in reason for reason in gaps)


KEEPERS = """\
import dataclasses

import torch


class Kept:
    def __init__(self, w, scale=1.0):
        self.w = w
        self.scale = scale


class Twice:
    def __init__(self, w):
        self.w = w * 2


@dataclasses.dataclass
class Fields:
    w: torch.Tensor


def f(x: torch.Tensor):
    y = x * 2
    {statements}
"""


@pytest.mark.parametrize(
    ("statements", "is_gap"),
    [
        ("kept = Kept(y)\n    y += 1\n    return kept", True),
        ("kept = Kept(w=y)\n    y.mul_(2)\n    return kept.w", True),
        ("kept = Fields(y)\n    y += 1\n    return kept", True),
        ("kept = [Kept(y), Kept(x)]\n    y += 1\n    return kept", True),
        ("kept = Twice(y)\n    y += 1\n    return kept.w + y", False),
        ("kept = Kept(x * 3)\n    y += 1\n    return kept.w + y", False),
        ("y += 1\n    kept = Kept(y)\n    return kept", False),
        ("kept = Kept(y)\n    y += 1\n    return y", False),
    ],
)
def test_an_object_shares_the_arrays_that_its_constructor_keeps(statements: str, is_gap: bool) -> None:
    gaps = translate(KEEPERS.format(statements=statements)).gaps
    assert [gap.code for gap in gaps] == ["in-place-shared"] * is_gap
