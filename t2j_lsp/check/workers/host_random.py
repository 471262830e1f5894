"""Random numbers that programs draw from Python's ``random`` and numpy's global generator: the same on both sides."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

Take = Callable[[str, tuple[int, ...]], Any]
"""Draws of a kind (``uniform``, ``normal``) in a shape, or None to let the original draw."""


def _shape(size: Any) -> tuple[int, ...]:
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


def _scalar(values: Any, shape: tuple[int, ...]) -> Any:
    return float(values) if shape == () else np.asarray(values, np.float64)


def _by_axes(kind: str, take: Take, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*shape: int) -> Any:
        drawn = take(kind, shape)
        return original(*shape) if drawn is None else _scalar(drawn, shape)

    return call


def _by_size(kind: str, take: Take, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(size: Any = None) -> Any:
        drawn = take(kind, _shape(size))
        return original(size) if drawn is None else _scalar(drawn, _shape(size))

    return call


def _scaled(kind: str, take: Take, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(first: Any = 0.0, second: Any = 1.0, size: Any = None) -> Any:
        drawn = take(kind, _shape(size))
        if drawn is None:
            return original(first, second, size)
        width = second - first if kind == "uniform" else second
        return first + width * _scalar(drawn, _shape(size))

    return call


def _python(kind: str, take: Take, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*arguments: float) -> float:
        drawn = take(kind, ())
        if drawn is None:
            return float(original(*arguments))
        first, second = arguments or (0.0, 1.0)
        return first + (second - first if kind == "uniform" else second) * float(drawn)

    return call


_REPLACED: tuple[tuple[Any, str, str, Any], ...] = (
    (np.random, "rand", "uniform", _by_axes),
    (np.random, "randn", "normal", _by_axes),
    (np.random, "random", "uniform", _by_size),
    (np.random, "random_sample", "uniform", _by_size),
    (np.random, "standard_normal", "normal", _by_size),
    (np.random, "uniform", "uniform", _scaled),
    (np.random, "normal", "normal", _scaled),
    (random, "random", "uniform", _python),
    (random, "uniform", "uniform", _python),
    (random, "gauss", "normal", _python),
    (random, "normalvariate", "normal", _python),
)


def install(take: Take) -> None:
    """Replaces the drawing functions, for good; what they draw is then what ``take`` gives."""
    for owner, name, kind, make in _REPLACED:
        setattr(owner, name, make(kind, take, getattr(owner, name)))


def seed(number: int) -> None:
    """Seeds both generators, for what is not replaced."""
    random.seed(number)
    np.random.seed(number % 2**32)


def state() -> tuple[object, bytes, int]:
    """What both generators are in: it changes with whatever is drawn from them."""
    _, keys, position, *_ = np.random.get_state(legacy=True)
    return random.getstate(), np.asarray(keys).tobytes(), int(position)
