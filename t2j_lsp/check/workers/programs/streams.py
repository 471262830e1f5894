"""Common random numbers of whole programs: the n-th draw of a kind and shape is the same on both sides.

A check's tape (`torch_side.random`) records the draws of one call and carries them over. A program makes too many for
that, inside compiled functions as well. Here a draw is a function of its kind, its shape and how many such draws were
made before, so that each side works it out for itself, whatever the order of other draws.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

_BITS = 24
_INSIDE = "construction: "
"""Kinds of draws that constructors of modules make."""
INITIAL = "initial: "
"""Kinds of draws into parameters while these are made. They are never JAX's: torch's parameters are loaded."""


class Streams:
    """The draws that a program made so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts: dict[tuple[str, tuple[int, ...]], int] = {}
        self.constructing = 0
        """How many constructors of modules are running, one inside the other."""

    def generator(self, kind: str, shape: tuple[int, ...]) -> np.random.Generator:
        """Gives the numbers of the next draw of a kind and shape. Axes of length 1 don't count."""
        kind = f"{_INSIDE}{kind}" if self.constructing else kind
        key = (kind, tuple(n for n in shape if n != 1))
        number = self.counts.get(key, 0)
        self.counts[key] = number + 1
        return np.random.default_rng([self.seed, zlib.crc32(kind.encode()), number, *key[1]])

    @property
    def made(self) -> dict[str, int]:
        """How many draws were made outside of constructors: ``{"normal numbers of shape (2, 3)": 4}``."""
        counted = (item for item in self.counts.items() if not item[0][0].startswith(_INSIDE))
        return {f"{kind} numbers of shape {shape}": number for (kind, shape), number in counted}

    def draw(self, kind: str, shape: tuple[int, ...]) -> Any:
        """The numbers of the next draw: standard normal or exponential, a permutation, or uniform in (0, 1)."""
        generator = self.generator(kind, shape)
        plain = kind.removeprefix(INITIAL)
        if plain == "normal":
            return np.asarray(generator.standard_normal(shape), np.float32)
        if plain == "exponential":
            return np.asarray(-np.log(uniform(generator, shape)), np.float32)
        if plain == "permutation":
            return generator.permutation(shape[0])
        return uniform(generator, shape)


def uniform(generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Numbers in (0, 1), exact in float32."""
    draws = (generator.integers(0, 2**_BITS, shape) + 0.5) / 2**_BITS
    return np.asarray(draws, np.float32).clip(2.0**-25, 1 - 2.0**-24)
