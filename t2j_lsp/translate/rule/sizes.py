"""What rule files state of the sizes of layers: what a layer gives for what it takes, and which take a size lazily.

A file in ``rules/`` states it, and the translator asks here::

    gives("torch.nn.Linear", lambda given, x: x.with_last(given["out_features"]))
    lazy("torch.nn.LazyLinear", "Linear", -1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .layer import LAYERS

Size = int | None
"""A size of an axis, None if it isn't known."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a tensor's last axes; of all, if it is ``whole``."""

    last: tuple[Size, ...] = ()
    whole: bool = False

    def at(self, axis: int) -> Size:
        """The size of an axis that is counted from the end."""
        return self.last[axis] if len(self.last) >= -axis else None

    def with_last(self, *sizes: Size) -> Sizes:
        """Other sizes of the last axes."""
        return Sizes((*self.last[: -len(sizes)], *sizes), self.whole and len(self.last) >= len(sizes))


UNKNOWN_SIZES = Sizes()
Given = Mapping[str, object]
"""The arguments that a constructor is given in plain sight, with the defaults of the others."""
_GIVES: dict[str, Callable[[Given, Sizes], Sizes]] = {}
_LAZY: dict[str, tuple[str, Callable[[Sizes], Size]]] = {}
_LIKE: dict[str, tuple[str, dict[str, object]]] = {}
MAKERS: set[str] = set()
"""Functions that make a tensor of the sizes that they are given, and of nothing else by position."""


def gives(name: str, sizes: Callable[[Given, Sizes], Sizes]) -> None:
    """State which sizes a layer gives."""
    _GIVES[name] = sizes


def lazy(name: str, eager: str, axis: int | Callable[[Sizes], Size]) -> None:
    """State which layer a lazy one is, and from which axis it takes the size that this one is given first."""
    _LAZY[name] = eager, axis if callable(axis) else lambda sizes: sizes.at(axis)


def like_layer(function: str, layer: str, **defaults: object) -> None:
    """State that a function gives the sizes of its first argument as a layer does, which takes the other arguments.

    ``defaults`` are those that the layer has otherwise.
    """
    _LIKE[function] = layer, defaults


def layer_of_function(function: str) -> tuple[str, dict[str, object]] | None:
    """The layer whose sizes a function gives, and its own defaults."""
    return _LIKE.get(function)


def makes_sized(*names: str) -> None:
    """State functions that make tensors of the sizes that they are given."""
    MAKERS.update(names)


def given_sizes(name: str, given: Given, sizes: Sizes) -> Sizes:
    """The sizes that a layer gives for those that it takes."""
    if name in LAYERS and LAYERS[name].elementwise:
        return sizes
    return _GIVES[name](given, sizes) if name in _GIVES else UNKNOWN_SIZES


def lazy_layer(name: str, sizes: Sizes) -> tuple[str, Size] | None:
    """The layer that a lazy one is, and the size that it takes from its first input; None if it isn't lazy."""
    if name not in _LAZY:
        return None
    eager, taken = _LAZY[name]
    return eager, taken(sizes)
