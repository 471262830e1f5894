"""Common random numbers of whole programs: a module class's n-th draw of a kind and shape is the same on both sides.

A check's tape (`torch_side.random`) records the draws of one call and carries them over. A program makes too many for
that, inside compiled functions as well. Here a draw is a function of its kind, its shape, the class whose forward pass
makes it and how many such draws were made before, so that each side works it out for itself, whatever the order of
other draws.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Collection

import numpy as np

from t2j_lsp.check.protocol import NdArray

_BITS = 24
_INSIDE = "construction: "
"""Kinds of draws that constructors of modules make."""
INITIAL = "initial: "
"""Kinds of draws into parameters while these are made. They are never JAX's: torch's parameters are loaded."""


class Streams:
    """The draws that a program made so far.

    ``classes`` are the module classes that both programs define, and ``method`` is their forward pass on this side.
    """

    def __init__(self, seed: int, classes: Collection[str] = (), method: str = "") -> None:
        self.seed = seed
        self.classes = frozenset(classes)
        self.method = method
        self.counts: dict[tuple[str, str, tuple[int, ...]], int] = {}
        self.constructing = 0
        """How many constructors of modules are running, one inside the other."""

    def drawer(self) -> str:
        """The class whose forward pass runs, the innermost one; empty outside of them.

        Two networks may draw in another order where a train step was put together.
        """
        frame = sys._getframe(1) if self.classes and not self.constructing else None
        while frame is not None:
            code = frame.f_code
            if code.co_name == self.method and code.co_argcount:
                types = type(frame.f_locals.get(code.co_varnames[0])).__mro__
                if (name := next((one.__name__ for one in types if one.__name__ in self.classes), None)) is not None:
                    return name
            frame = frame.f_back
        return ""

    def generator(self, kind: str, shape: tuple[int, ...], drawer: str) -> np.random.Generator:
        """Gives the numbers of a class's next draw of a kind and shape. Axes of length 1 don't count."""
        kind = f"{_INSIDE}{kind}" if self.constructing else kind
        key = (drawer, kind, tuple(n for n in shape if n != 1))
        number = self.counts.get(key, 0)
        self.counts[key] = number + 1
        who = zlib.crc32(f"{drawer} {kind}".lstrip().encode())
        return np.random.default_rng([self.seed, who, number, *key[2]])

    @property
    def made(self) -> dict[str, int]:
        """How many draws were made outside of constructors: ``{"normal numbers of shape (2, 3)": 4}``."""
        total: dict[str, int] = {}
        for (_, kind, shape), number in self.counts.items():
            if not kind.startswith(_INSIDE):
                what = f"{kind} numbers of shape {shape}"
                total[what] = total.get(what, 0) + number
        return total

    def draw(self, kind: str, shape: tuple[int, ...], drawer: str) -> NdArray:
        """The numbers of the next draw: standard normal or exponential, a permutation, or uniform in (0, 1)."""
        generator = self.generator(kind, shape, drawer)
        plain = kind.removeprefix(INITIAL)
        if plain == "normal":
            return np.asarray(generator.standard_normal(shape), np.float32)
        if plain == "exponential":
            return np.asarray(-np.log(uniform(generator, shape)), np.float32)
        if plain == "permutation":
            return generator.permutation(shape[0])
        return uniform(generator, shape)


def uniform(generator: np.random.Generator, shape: tuple[int, ...]) -> NdArray:
    """Numbers in (0, 1), exact in float32."""
    draws = (generator.integers(0, 2**_BITS, shape) + 0.5) / 2**_BITS
    return np.asarray(draws, np.float32).clip(2.0**-25, 1 - 2.0**-24)
