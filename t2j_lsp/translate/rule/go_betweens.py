"""What rule files state of objects through which programs use PyTorch: what the same program says without them.

A file in ``rules/`` states it, and the translator asks here. Forms have the first argument, ``{0}``, or all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class GoBetween:
    """A class whose one object is handed what a program makes, and gives it back to be used as before."""

    note: str
    calls: Mapping[str, str]
    """Methods, with what stands for a call of them."""
    values: Mapping[str, str]
    """Attributes, with what stands for them."""
    handed_back: str
    """The method that gives all that it is given."""
    gone: frozenset[str]
    """Methods whose statements go."""
    absent: frozenset[str]
    """Attributes that are None."""
    needed: Mapping[str, tuple[object, ...]]
    """Arguments of the constructor for which an object is needed, unless they have one of these values."""


GO_BETWEENS: dict[str, GoBetween] = {}
"""The classes by their names."""


def go_between(name: str, stated: GoBetween) -> None:
    """State what a program says without the objects of a class."""
    GO_BETWEENS[name] = stated
