"""Dataclasses that cross the border between the checker and its workers, as plain data (`protocol.plain`)."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Self, TypeVar

_Other = TypeVar("_Other", bound="Message")


class Message:
    """A dataclass that crosses the border as a dict of its fields."""

    def to_plain(self) -> dict[str, Any]:
        """The fields by name, what is in them too."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: _plain(getattr(self, f.name)) for f in fields}

    def as_a(self, kind: type[_Other], **more: Any) -> _Other:
        """A message of another kind with what this one has of its fields; ``more`` are the rest, or instead of them."""
        names = _kinds(kind)  # type: ignore[arg-type]
        own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return kind(**{**own, **more})

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """The message again. A field that the other side left out has its default; KeyError where it has none."""
        kinds = _kinds(cls)  # type: ignore[arg-type]
        unknown = data.keys() - kinds.keys()
        if unknown:
            raise KeyError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
        return cls(**{name: _typed(kinds[name], value) for name, value in data.items()})


@cache
def _kinds(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _plain(value: Any) -> Any:
    if _crosses(type(value)):
        return value.to_plain()
    if type(value) is list and value and _has_inside(value[0]):
        return [_plain(v) for v in value]
    if type(value) is dict and any(map(_has_inside, value.values())):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _crosses(kind: Any) -> bool:
    """Whether what crosses is made plain by its class: a message, or a value such as `Arguments`."""
    return isinstance(kind, type) and hasattr(kind, "to_plain") and hasattr(kind, "from_plain")


def _has_inside(value: Any) -> bool:
    return _crosses(type(value)) or isinstance(value, list)


def _typed(kind: Any, value: Any) -> Any:
    """A plain value as its field's type says: only what is no plain data has to be made again."""
    if _crosses(kind):
        return kind.from_plain(value)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [k for k in arguments if k is not type(None)]
        return None if value is None else _typed(inner[0], value)
    if origin is list and _holds(arguments[0]):
        return [_typed(arguments[0], v) for v in value]
    if origin is dict and _holds(arguments[1]):
        return {k: _typed(arguments[1], v) for k, v in value.items()}
    return value


def _holds(kind: Any) -> bool:
    return _crosses(kind) or any(_holds(k) for k in typing.get_args(kind))
