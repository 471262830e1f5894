"""Tensors as keys of dicts and items of sets: a gap, for arrays have no hash; numbers, names and ids are none."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn


def f(x: torch.Tensor, net: nn.Linear, names: dict[str, torch.Tensor]):
    y = x * 2
    {}
    return y
"""
HASHED = [
    "seen = {x: 1}",
    "seen = {x, y}",
    "seen = set([x, y])",
    "seen = frozenset([x])",
    "seen = {p: 0.1 for p in [x, y]}",
    "seen = {p for p in [x, y]}",
    "seen = {'x': 1}\n    seen[x] = 2",
    "seen = {'x': 1}\n    y = y * seen.get(y, 1)",
    "seen = {'x': 1}\n    y = y if x in seen else -y",
    "y = y * hash(x)",
    "rates = {net.weight: 0.1}",
]


@pytest.mark.parametrize("code", HASHED)
def test_an_array_that_is_asked_for_its_hash_is_a_gap(code: str) -> None:
    gaps = convert(TEXT.format(code)).gaps

    assert gaps and all("have no hash" in gap.reason for gap in gaps)


PLAIN = [
    "seen = {int(x.sum()): 1}",
    "seen = {x.shape: 1}",
    "seen = {id(x), id(y)}",
    "seen = {'x': x, 'y': y}",
    "seen = set(x.tolist())",
    "seen = {k: v for k, v in names.items()}",
    "y = y * names['x']",
    "seen = {x.dtype: 1, x.ndim: 2}",
    "seen = {**names, 'y': y}",
]


@pytest.mark.parametrize("code", PLAIN)
def test_numbers_names_and_ids_are_none(code: str) -> None:
    assert not convert(TEXT.format(code)).gaps
