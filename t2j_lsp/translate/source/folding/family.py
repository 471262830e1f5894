"""A class among the helpers, with those it derives from and those that derive from it."""

from __future__ import annotations

import ast
import collections.abc
from collections.abc import Iterator
from dataclasses import dataclass, field

from .signatures import NEW
from .uses import UseFinder

_PROTOCOLS = frozenset(collections.abc.__all__)
"""Bases that ask for methods which nobody may name: a dict that has no ``__iter__`` can't be made."""


@dataclass
class Family:
    """A class with those it derives from and those that derive from it, as far as they are helpers."""

    finder: UseFinder
    nodes: dict[str, ast.ClassDef]
    above: dict[str, list[str]] = field(default_factory=dict)
    """For each class, its helper bases, nearest first."""

    def __post_init__(self) -> None:
        for name in self.nodes:
            self.above[name] = list(self._ancestors(name))

    def _ancestors(self, name: str) -> Iterator[str]:
        for base in self.nodes[name].bases:
            if isinstance(base, ast.Name) and base.id in self.nodes:
                yield base.id
                yield from self._ancestors(base.id)

    def below(self, name: str) -> list[str]:
        return [other for other, bases in self.above.items() if name in bases]

    def kin(self, name: str) -> list[str]:
        """The class, its bases, and all that derive from any of them."""
        roots = [name, *self.above[name]]
        return list(dict.fromkeys([*roots, *(one for root in roots for one in self.below(root))]))

    def is_plain(self, name: str) -> bool:
        """Whether a class and its kin have no bases but helpers and ``nnx.Module``."""
        bases = [base for one in self.kin(name) for base in self.nodes[one].bases]
        return all(isinstance(b, ast.Name) and b.id in self.nodes or ast.unparse(b) == "nnx.Module" for b in bases)

    def has_protocol(self, name: str) -> bool:
        """Whether a class or its kin is one of ``collections.abc``, whose methods have to be there."""
        bases = [base for one in self.kin(name) for base in self.nodes[one].bases]
        return any(ast.unparse(base).partition("[")[0] in _PROTOCOLS for base in bases)

    def is_called_back(self, name: str) -> bool:
        """Whether a base that is neither a helper nor Flax's may call methods by names that stand nowhere."""
        bases = [base for one in (name, *self.above[name]) for base in self.nodes[one].bases]
        return any(ast.unparse(b) not in self.nodes and not ast.unparse(b).startswith("nnx.") for b in bases)

    def is_known(self, name: str) -> bool:
        """Whether every use of a class and its kin is."""
        uses = [self.finder.uses[one] for one in self.kin(name)]
        return all(one.known and None not in one.subclassed for one in uses)

    def has(self, name: str, method: str) -> bool:
        return any(isinstance(s, ast.FunctionDef) and s.name == method for s in self.nodes[name].body)

    def constructor(self, name: str) -> str | None:
        """The class whose constructor makes one, if it is a helper."""
        return next((one for one in (name, *self.above[name]) if self.has(one, NEW)), None)
