"""Places in storage, and what a value may be or hold of them.

A place is a path: the value that made it, then what was picked of it, each step with how it was picked. Two pieces
that one ``chunk`` gave share nothing; what was picked in different ways may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CROSSING = ("memory", None)
"""The step from an array of NumPy to a tensor that has its memory, or back."""

Place = tuple[object, tuple[tuple[str, object], ...]]
"""What made the storage, and the steps to a part of it."""
DEEPEST = 5


@dataclass(frozen=True)
class Reached:
    """What a value may be: places in storage, and of a container its items, None for those of unknown position."""

    places: frozenset[Place] = frozenset()
    items: Mapping[object, Reached] = field(default_factory=dict)

    def reach(self) -> frozenset[Place]:
        """All storage that can be got at through it."""
        return self.places.union(*(item.reach() for item in self.items.values()))

    def __or__(self, other: Reached) -> Reached:
        items = dict(self.items)
        for key, item in other.items.items():
            items[key] = items[key] | item if key in items else item
        return Reached(self.places | other.places, items)

    def item(self, key: object = None, picked: str = "[]") -> Reached:
        """What is at a position; None if that isn't known."""
        if key is None or self.items and key not in self.items:
            return Reached(self.places).joined(self.items.values())
        parts = frozenset((made, (*steps, (picked, key))[:DEEPEST]) for made, steps in self.places)
        return Reached(parts).joined(self.items[k] for k in (key, None) if k in self.items)

    def joined(self, others: Iterable[Reached]) -> Reached:
        """It, or any of others."""
        either = self
        for other in others:
            either |= other
        return either

    def added(self, key: object, item: Reached) -> Reached:
        """It, with one more item."""
        return self | Reached(items={key: item})


NOWHERE = Reached()


def made_by(owner: object) -> Reached:
    """Storage that is known by who made it."""
    return Reached(frozenset({(owner, ())}))


def crossed(place: Place) -> bool:
    """Whether it is seen from the other side: as a tensor if NumPy made it, as an array if it was a tensor."""
    return place[1].count(CROSSING) % 2 == 1


STATE = "state_dict()"
"""What made the arrays of a state dict: some module, which sees what is written into them."""


def is_state(held: Reached) -> bool:
    """Whether a value may be a state dict, or an array in it."""
    return any(owner == STATE for owner, _ in held.places)


Env = dict[str, Reached]
"""What names hold, dotted ones too."""


def joined(left: Env | None, right: Env | None) -> Env | None:
    """What names hold where two ways meet."""
    if left is None or right is None:
        return right if left is None else left
    return {name: left[name] | right[name] if name in left and name in right else left.get(name) or right[name]
            for name in (*left, *(n for n in right if n not in left))}  # fmt: skip


def overlap(left: frozenset[Place], right: frozenset[Place]) -> bool:
    """Whether two sets of places may have storage in common."""
    return any(_meets(a, b) for a in left for b in right)


def _meets(left: Place, right: Place) -> bool:
    if left[0] != right[0]:
        return False
    for one, other in zip(left[1], right[1], strict=False):
        if one != other:
            return one[0] != other[0]
    return True
