"""What is known of a function's values, and what the pass over it is told of its surroundings."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Last:
    """A value whose last axis is its channels. ``rank`` counts its spatial axes; ``single``: all of them are 1 long."""

    rank: int
    single: bool = False


@dataclass(frozen=True)
class NamedValue:
    """What a name holds: a channels-last value, and the assignments or the parameter that may have given it."""

    value: Last
    bindings: frozenset[ast.AST]


@dataclass
class Marks:
    """What is known of the expressions of a function."""

    natural: dict[ast.expr, int] = field(default_factory=dict)
    """Expressions whose value is channels-last, with the number of its spatial axes."""
    wanted: dict[ast.expr, int] = field(default_factory=dict)
    """Those that stand where such a value is taken."""
    free: set[ast.expr] = field(default_factory=set)
    """Those of them that would do with PyTorch's axes as well."""
    met: set[ast.Call] = field(default_factory=set)
    """Calls of modules that were given their arguments' layout."""
    functions: set[ast.Call] = field(default_factory=set)
    """Calls of functions that take their channels-last form."""
    texts: dict[ast.expr, str | ast.expr] = field(default_factory=dict)
    """What axes and sizes become: a text, or what another expression is."""
    plain_return: bool = False
    """Whether it returns something that is not channels-last."""
    returned: set[int] = field(default_factory=set)
    """The spatial axes of what it returns otherwise."""
    reads: dict[ast.Name, NamedValue] = field(default_factory=dict)

    def uses(self) -> tuple[Counter[ast.AST], Counter[ast.AST]]:
        """How often what was assigned is taken channels-last, and how often it is moved back."""
        taken: Counter[ast.AST] = Counter()
        moved: Counter[ast.AST] = Counter()
        for name, held in self.reads.items():
            if name not in self.wanted:
                moved.update(held.bindings)
            elif name not in self.free:
                taken.update(held.bindings)
        return taken, moved


@dataclass(frozen=True)
class Called:
    """What a call of a module or function takes and gives channels-last. ``takes`` is by argument."""

    takes: Mapping[ast.expr, int]
    gives: int = 0


class Marking(Protocol):
    """The pass over a function, as those see it that mark parts of it."""

    marks: Marks
    kept: set[ast.AST]

    @property
    def scene(self) -> Scene: ...

    def mark(self, node: ast.expr) -> Last | None:
        """Mark an expression and those in it; what it is if its value is channels-last."""

    def want(self, node: ast.expr, rank: int, free: bool = False) -> None:
        """Something takes a value channels-last; ``free``: it would do with PyTorch's axes as well."""

    def spread(self, value: ast.expr, rank: int) -> Last:
        """Write ``v.view(b, c, 1, 1)`` as ``v.view(b, 1, 1, c)``."""


class Scene(Protocol):
    """What a function is told of its surroundings."""

    def called(self, node: ast.Call) -> Called | None:
        """What a call of a module takes, if it is known to take or give channels-last values."""

    def alike(self, node: ast.Call) -> ast.expr | None:
        """The argument of a call that treats all axes alike."""

    def function(self, node: ast.Call) -> int:
        """The spatial axes of a function that has a channels-last form; 0 where it has none."""

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number."""

    def spread(self, node: ast.expr) -> int:
        """The spatial axes of a value for each channel, ``v.view(b, c, 1, 1)``, that may be made channels-last."""

    def single(self, node: ast.Call) -> bool:
        """Whether what a call gives has one value for each channel."""

    def axes(self, values: Marking, node: ast.AST) -> tuple[bool, Last | None]:
        """Mark an operation that names axes; whether it was one, and what it gives."""
