"""Decorators of the user's own that keep what a function gave, as `functools.lru_cache` does."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2j_lsp.api import convert

BY_LIBRARY = """\
import functools
import torch


def kept(size=8):
    def decorator(f):
        cached = functools.lru_cache(maxsize=size)(f)

        def wrapper(*args):
            return cached(*args)

        return wrapper

    return decorator
"""
BY_DICT = """\
import torch

CACHE = {}


def kept(size=8):
    def decorator(f):
        def wrapper(*args):
            if args in CACHE:
                return CACHE[args]
            result = f(*args)
            CACHE[args] = result
            return result

        return wrapper

    return decorator
"""
COUNTS = """\
import torch

CALLS = {}


def kept(size=8):
    def decorator(f):
        def wrapper(*args):
            made, CALLS[args] = {}, 1
            made[args] = f(*args)
            return made[args]

        return wrapper

    return decorator
"""
GRID = """

@kept(size=4)
def grid(n):
    return torch.arange(n).repeat(2)
"""
DOUBLED = """

@kept()
def doubled(x: torch.Tensor):
    return torch.relu(x) * 2
"""


@pytest.mark.parametrize("head", [BY_LIBRARY, BY_DICT], ids=["lru_cache", "a dict"])
def test_what_it_keeps_is_made_outside_of_a_trace(head: str) -> None:
    translation = convert(head + GRID)
    names: dict[str, Any] = {}
    exec(translation.code, names)
    for factor in (1, 2):  # the second trace is given what the first one kept
        got = jax.jit(lambda x, factor=factor: factor * x + names["grid"](3))(jnp.ones(6))
        np.testing.assert_array_equal(got, factor + np.tile(np.arange(3), 2))
    assert not [f for f in translation.findings if f.code == "value-needed"]
    assert convert(translation.code).code == translation.code


@pytest.mark.parametrize("head", [BY_LIBRARY, BY_DICT], ids=["lru_cache", "a dict"])
def test_what_it_keeps_of_an_array_is_said_to_be_of_a_trace(head: str) -> None:
    translation = convert(head + DOUBLED)
    assert [f.name for f in translation.findings if f.code == "value-needed"] == ["kept()"]
    assert "ensure_compile_time_eval" not in translation.code


def test_a_decorator_that_keeps_nothing_beyond_a_call_is_none() -> None:
    translation = convert(COUNTS + GRID + DOUBLED)
    assert "ensure_compile_time_eval" not in translation.code
    assert not [f for f in translation.findings if f.code == "value-needed"]
