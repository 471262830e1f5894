"""What a change is: a function from a program to another one that means the same, registered under a name.

A change that isn't sure of a place leaves it alone, and one that finds no place for itself returns the text as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst

from .source import Source


@dataclass(frozen=True)
class Changed:
    """A changed text. ``renamed`` has the old name of each new one, in the order in which they were given."""

    text: str
    renamed: Mapping[str, str] = field(default_factory=dict)

    def old(self, name: str) -> str:
        """What a name was called in the original."""
        return self.renamed.get(name, name)

    def new(self, name: str) -> str:
        """What a name of the original is called now."""
        return next((new for new, old in self.renamed.items() if old == name), name)

    def then(self, other: Changed) -> Changed:
        """``other`` was made from this text."""
        passed = {new: self.old(old) for new, old in other.renamed.items()}
        return Changed(other.text, {**{n: o for n, o in self.renamed.items() if o not in passed.values()}, **passed})


@lru_cache(maxsize=16)
def _source(text: str) -> Source:
    """The text as it was read for the change before, where it is the same."""
    return Source(text)


Apply = Callable[[Source, random.Random], "cst.Module | Changed"]


@dataclass(frozen=True)
class Change:
    """One kind of change."""

    name: str
    about: str
    apply: Apply
    programs: bool = False
    """Whether it is for whole programs: what trains, prints and reads settings."""

    def of(self, text: str, seed: str) -> Changed:
        """The changed text; ``seed`` decides where the change has a choice."""
        result = self.apply(_source(text), random.Random(f"{self.name} {seed}"))
        return result if isinstance(result, Changed) else Changed(result.code)


CHANGES: dict[str, Change] = {}


def change(name: str, *, programs: bool = False) -> Callable[[Apply], Apply]:
    """Register a function as a kind of change; the first line of its docstring says what it does."""

    def register(apply: Apply) -> Apply:
        if name in CHANGES:
            raise ValueError(f"{name} is registered twice")
        CHANGES[name] = Change(name, (apply.__doc__ or "").strip().partition("\n")[0], apply, programs)
        return apply

    return register
