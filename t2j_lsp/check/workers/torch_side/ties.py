"""Orders ties as JAX does: the lowest index first.

torch leaves open which of several equal elements ``topk``, ``sort`` and ``argsort`` name first, and its choice changes
with the size of the input. A conversion that makes another choice is right, so in a check torch makes JAX's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_sort = torch.sort


def _stable(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("stable") is None and not (args and isinstance(args[0], bool)) and "out" not in kwargs:
            names = ("dim", "descending")
            kwargs = {**dict(zip(names, args, strict=False)), **kwargs, "stable": True}
            args = ()
        return original(input, *args, **kwargs)

    return call


def _topk(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(
        input: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, **kwargs: Any
    ) -> Any:
        result = original(input, k, dim, largest, sorted, **kwargs)
        if kwargs or input.ndim == 0:
            return result
        values, indices = _sort(input, dim=dim, descending=largest, stable=True)
        return type(result)((values.narrow(dim, 0, int(k)), indices.narrow(dim, 0, int(k))))

    return call


def install() -> None:
    """Replaces torch's functions. Called once, before user code is loaded."""
    for owner in (torch, torch.Tensor):
        for name, replace in (("topk", _topk), ("sort", _stable), ("argsort", _stable)):
            setattr(owner, name, replace(getattr(owner, name)))
