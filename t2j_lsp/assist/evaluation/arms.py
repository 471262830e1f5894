"""The kinds of prompt that an evaluation compares, and the fixed bugs that each may show for a program.

Never those of the program itself: an index over the other programs' bugs stands in for the whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2j_lsp.assist.prompts import Style
from t2j_lsp.contract import T2JError
from t2j_lsp.fixes.record import CATEGORIES, BugIndex, Pair, Query, SimilarPair

WITHOUT = "without="
NAMES = ("standard", "retrieved", "all", f"{WITHOUT}CATEGORY")


@dataclass(frozen=True)
class Arm:
    """One kind of prompt: the standard one shows no fixed bugs; augmented ones show retrieved ones, or all."""

    name: str
    style: Style
    everything: bool = False
    without: str | None = None
    """A category whose fixed bugs are left out."""


def arm(name: str) -> Arm:
    """The arm of a name. Raises T2JError."""
    if name == "standard":
        return Arm(name, "standard")
    if name in ("retrieved", "all"):
        return Arm(name, "augmented", everything=name == "all")
    category = name.removeprefix(WITHOUT)
    if category == name:
        raise T2JError(f"there is no arm {name!r}; there are {', '.join(NAMES)}")
    if category not in CATEGORIES:
        raise T2JError(f"fixed bugs have no category {category!r}; they have {', '.join(CATEGORIES)}")
    return Arm(name, "augmented", without=category)


@dataclass(frozen=True)
class Shown:
    """An index over the fixed bugs that an arm may show; ``pairs`` are those that it shows unasked."""

    index: BugIndex | None
    pairs: tuple[Pair, ...] | None = None


def shown(arm: Arm, index: BugIndex, every: Sequence[Pair], same: frozenset[str]) -> Shown:
    """What an arm may show for a program, where ``same`` are the names of the data set's programs that it is."""
    if arm.style == "standard":
        return Shown(None, ())

    def left_out(pair: Pair) -> bool:
        return pair.example.program in same or pair.bug.category == arm.without

    if arm.everything:
        return Shown(None, tuple(pair for pair in every if not left_out(pair)))
    return Shown(PartialIndex(index, left_out))


@dataclass(frozen=True)
class PartialIndex:
    """An index without some of its pairs."""

    index: BugIndex
    left_out: Callable[[Pair], bool]

    def __len__(self) -> int:
        return len(self.index)

    def search(
        self,
        query: Query,
        limit: int = 5,
        but: Callable[[Pair], bool] = lambda pair: False,
        tokens: int | None = None,
        distinct: bool = False,
    ) -> list[SimilarPair]:
        """As that of the whole index."""
        return self.index.search(query, limit, lambda pair: self.left_out(pair) or but(pair), tokens, distinct)
