"""What a reading finds in a text."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Problem:
    """Something in a text that fails when it runs."""

    line: int
    """1-based."""
    scope: tuple[str, ...]
    """The functions and classes around it, outermost first."""
    name: str
    """The name that it is about."""
    certain: bool
    """Whether it fails whenever it is reached; else there is a way to it on which it does."""
    reason: str

    def moved_from(self, scope: tuple[str, ...]) -> Problem:
        """The same in a scope that calls the function it stands in."""
        return replace(self, scope=scope)

    def is_also_in(self, others: set[tuple[tuple[str, ...], str, bool]]) -> bool:
        """Whether another text has the same problem, at the same place or around it (see `keys`)."""
        around = [self.scope[:length] for length in range(len(self.scope) + 1)]
        return any(
            (scope, self.name, certain) in others
            for scope in around
            for certain in (True, *[False] * (not self.certain))
        )


def keys(problems: list[Problem]) -> set[tuple[tuple[str, ...], str, bool]]:
    """What `Problem.is_also_in` compares with."""
    return {(p.scope, p.name, p.certain) for p in problems}
