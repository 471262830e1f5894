"""A tensor's method that is given a dict of keywords, which is empty if none is wanted."""

from __future__ import annotations

import numpy as np
import pytest

from .convert import body, run
from .side_by_side import sides

PROGRAM = """\
import torch
from torch import Tensor


def masked_mean(t: Tensor, mask: Tensor, dim=None, keepdim=False):
    kw = dict(dim=dim, keepdim=keepdim) if dim is not None else dict()
    masked = t * mask
    total = masked.sum(**kw)
    return total / mask.sum(**kw).clamp(min=1e-5)


def size(t: Tensor, dim=None):
    kw = {} if dim is None else {"dim": dim}
    return t.norm(2, **kw) * 2


t = torch.linspace(-1, 2, 12).reshape(3, 4)
mask = (t > 0).float()
made = [masked_mean(t, mask), masked_mean(t, mask, 1), masked_mean(t, mask, 0, True), size(t), size(t, 1), size(t, 0)]
made = [one.tolist() for one in made]
"""


def test_both_calls_are_written() -> None:
    pair = sides(PROGRAM, "keywords_that_may_be_none")
    assert not pair.gaps()
    for jax, torch in zip(pair.jax.made, pair.torch.made, strict=True):
        np.testing.assert_allclose(jax, torch, rtol=1e-6)


def test_the_condition_has_brackets_where_it_needs_them() -> None:
    code = "def f(x: Tensor, d=None):\n    kw = {'dim': d} if d is not None else {}\n    "
    assert body(f"{code}return x.sum(**kw)\n").endswith('return x.sum(axis=kw["dim"]) if kw else x.sum()')
    assert body(f"{code}return 2 * x.sum(**kw)\n").endswith('return 2 * (x.sum(axis=kw["dim"]) if kw else x.sum())')


@pytest.mark.parametrize(
    "lines",
    [
        "kw = {'dim': d} if d else {}\n    kw['keepdim'] = True",
        "kw = {'dim': d} if d else {}\n    kw.update(keepdim=True)",
        "kw = {'dim': d} if d else {}\n    print(kw)",
        "kw = {'dim': d} if d else {}\n    other = kw\n    other['keepdim'] = True",
        "kw = {'dim': 0} if d else {'dim': d, 'keepdim': True}",
        "kw = {'dim': 0} if d else None",
    ],
)
def test_a_dict_that_may_be_another_stays(lines: str) -> None:
    assert run(f"def f(x: Tensor, d=0):\n    {lines}\n    return x.sum(**kw)\n").gaps


@pytest.mark.parametrize("value", ["{'dim': d}", "{'dim': d} if d else {}"])
def test_a_dict_that_the_caller_may_give_stays(value: str) -> None:
    assert run(f"def f(x: Tensor, d=0, kw=None):\n    if d:\n        kw = {value}\n    return x.sum(**kw)\n").gaps


def test_another_function_may_fill_a_dict_of_the_same_name() -> None:
    one = "def f(x: Tensor, d=0):\n    kw = {'dim': d} if d else {}\n    return x.sum(**kw)\n"
    other = "def g(d):\n    kw = {}\n    kw['dim'] = d\n    return kw\n"
    assert not run(f"{one}\n{other}").gaps
