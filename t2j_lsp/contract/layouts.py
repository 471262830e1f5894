"""What a converted function takes and gives channels-last, and the comment in it that says so.

The comment is for readers, and for what reads converted code again: the check gives each module its values as it takes
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_RESULT = "the result"
_COMMENT = re.compile(r"^ *# Channels last, \(N, (\w(?:, \w)*), C\): (\w.*)$", re.MULTILINE)
_SPACE = {1: "W", 2: "H, W", 3: "D, H, W"}


@dataclass(frozen=True)
class ChannelsLast:
    """The parameters of a function that are channels-last and whether its result is; ``rank`` counts spatial axes."""

    rank: int
    takes: tuple[str, ...] = ()
    gives: bool = False

    @property
    def comment(self) -> str:
        """``# Channels last, (N, H, W, C): x and the result``."""
        names = [*self.takes, *([_RESULT] if self.gives else [])]
        text = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        return f"# Channels last, (N, {_SPACE[self.rank]}, C): {text}"

    def to_plain(self) -> dict[str, Any]:
        """For the worker."""
        return asdict(self)

    @staticmethod
    def from_plain(data: Mapping[str, Any]) -> ChannelsLast:
        return ChannelsLast(**data)


def channels_last_of(text: str) -> ChannelsLast | None:
    """What a function's text says of itself."""
    match = _COMMENT.search(text)
    if match is None:
        return None
    names = re.split(r", | and ", match[2])
    rank = match[1].count(",") + 1
    return ChannelsLast(rank, tuple(n for n in names if n != _RESULT), _RESULT in names)
