"""Values that are one of several functions of a library: ``pool = torch.mean if average else torch.sum``."""

from __future__ import annotations

from dataclasses import dataclass

from .facts import Fact, Qual
from .record import REGISTRY

_MANY = 12
"""More functions than these are a table that nothing is known of."""


@dataclass(frozen=True)
class OneOf(Fact):
    """One of several functions of PyTorch, by their qualified names."""

    names: frozenset[str]


def one_of(a: Fact, b: Fact) -> OneOf | None:
    """Two facts of functions that have rules, as one; None if they are of other things."""
    names: set[str] = set()
    for fact in (a, b):
        match fact:
            case OneOf():
                names |= fact.names
            case Qual(name=name) if _is_function(name):
                names.add(name)
            case _:
                return None
    return OneOf(frozenset(names)) if len(names) <= _MANY else None


def _is_function(name: str) -> bool:
    rule = REGISTRY.get(name)
    return rule is not None and rule.emit is not None and bool(rule.signatures[0].parameters)
