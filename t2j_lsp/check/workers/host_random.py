"""Random numbers that programs draw from Python's ``random`` and numpy's global generator: the same on both sides."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

Take = Callable[[str, tuple[int, ...]], Any]
"""Draws of a kind (``uniform``, ``normal``) in a shape, or None to let the original draw."""
Make = Callable[[str, Take, Callable[..., Any]], Callable[..., Any]]
"""Of the kind of a function's draws, who draws them, and the function: what stands in for it."""


def _shape(size: Any) -> tuple[int, ...]:
    return () if size is None else (int(size),) if np.ndim(size) == 0 else tuple(int(axis) for axis in size)


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


def _scaled(first: str, second: str) -> Make:
    """Draws that are moved and stretched by two parameters of these names, numbers or arrays."""

    def make(kind: str, take: Take, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            given = {**dict(zip((first, second, "size"), arguments, strict=False)), **named}
            start, end = given.get(first, 0.0), given.get(second, 1.0)
            size = given.get("size")
            shape = np.broadcast_shapes(np.shape(start), np.shape(end)) if size is None else _shape(size)
            if (
                len(arguments) > 3
                or not given.keys() <= {first, second, "size"}
                or (drawn := take(kind, shape)) is None
            ):
                return original(*arguments, **named)
            width = np.subtract(end, start) if kind == "uniform" else end
            return start + width * _scalar(drawn, shape)

        return call

    return make


def _python(first: str, second: str, **defaults: float) -> Make:
    """The same of Python's own functions, which give one number."""

    def make(kind: str, take: Take, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*arguments: float, **named: float) -> float:
            given = {**defaults, **dict(zip((first, second), arguments, strict=False)), **named}
            if len(arguments) > 2 or given.keys() != {first, second} or (drawn := take(kind, ())) is None:
                return float(original(*arguments, **named))
            start, end = given[first], given[second]
            return start + (end - start if kind == "uniform" else end) * float(drawn)

        return call

    return make


def _plain(kind: str, take: Take, original: Callable[[], float]) -> Callable[[], float]:
    @functools.wraps(original)
    def call() -> float:
        drawn = take(kind, ())
        return original() if drawn is None else float(drawn)

    return call


_REPLACED: tuple[tuple[Any, str, str, Make], ...] = (
    (np.random, "rand", "uniform", _by_axes),
    (np.random, "randn", "normal", _by_axes),
    (np.random, "random", "uniform", _by_size),
    (np.random, "random_sample", "uniform", _by_size),
    (np.random, "standard_normal", "normal", _by_size),
    (np.random, "uniform", "uniform", _scaled("low", "high")),
    (np.random, "normal", "normal", _scaled("loc", "scale")),
    (random, "random", "uniform", _plain),
    (random, "uniform", "uniform", _python("a", "b")),
    (random, "gauss", "normal", _python("mu", "sigma", mu=0.0, sigma=1.0)),
    (random, "normalvariate", "normal", _python("mu", "sigma", mu=0.0, sigma=1.0)),
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
