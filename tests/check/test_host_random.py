"""Draws of Python and NumPy that a check replaces take their arguments as the originals do."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from t2j_lsp.check.workers import host_random


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """What is asked of whoever draws, who gives halves."""
    asked: list[tuple[str, tuple[int, ...]]] = []

    def take(kind: str, shape: tuple[int, ...]) -> Any:
        asked.append((kind, shape))
        return np.full(shape, 0.5)

    for owner, name, _, _ in host_random._REPLACED:
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back at the end
    host_random.install(take)
    return asked


CALLS: dict[str, tuple[Callable[[], Any], tuple[int, ...], Any]] = {
    "by place": (lambda: np.random.normal(1.0, 4.0, (2, 3)), (2, 3), 3.0),
    "by name": (lambda: np.random.normal(loc=1.0, scale=4.0, size=3), (3,), 3.0),
    "some by name": (lambda: np.random.uniform(2.0, size=(2,), high=4.0), (2,), 3.0),
    "defaults": (lambda: np.random.uniform(), (), 0.5),
    "a size of numpy's": (lambda: np.random.normal(size=np.int64(3)), (3,), 0.5),
    "arrays say the shape": (lambda: np.random.uniform(np.zeros(3), high=np.full((2, 1), 4.0)), (2, 3), 2.0),
    "numbers of one array": (lambda: np.random.normal(np.array([1.0, 1.0])), (2,), 1.5),
    "sizes of an array": (lambda: np.random.random(size=(2,)), (2,), 0.5),
    "Python's, by place": (lambda: random.uniform(2, 4), (), 3.0),
    "Python's, by name": (lambda: random.uniform(a=2, b=4), (), 3.0),
    "Python's, of one name": (lambda: random.gauss(sigma=4.0), (), 2.0),
    "Python's own": (lambda: random.random(), (), 0.5),
}


@pytest.mark.parametrize(("call", "shape", "value"), CALLS.values(), ids=CALLS)
def test_a_replaced_draw(
    drawn: list[tuple[str, tuple[int, ...]]], call: Callable[[], Any], shape: tuple[int, ...], value: float
) -> None:
    given = call()
    assert [asked for _, asked in drawn] == [shape]
    assert np.shape(given) == shape
    np.testing.assert_allclose(given, np.full(shape, value))


WRONG: dict[str, Callable[[], Any]] = {
    "another name": lambda: np.random.normal(loc=0, width=1),
    "too many": lambda: np.random.uniform(0, 1, 2, 3),
    "another name of Python's": lambda: random.gauss(loc=0),
    "none at all": lambda: random.uniform(),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
@pytest.mark.usefixtures("drawn")
def test_a_wrong_call_fails_as_the_original(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        call()
