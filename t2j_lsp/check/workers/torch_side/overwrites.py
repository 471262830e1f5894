"""Gives a gradient to the last of several values that are written to one place, and none to those it overwrites.

torch leaves open which of them stays where indices repeat, and its gradient of ``x[index] = values`` goes to all of
them. That is no derivative of what was computed. JAX's is, so in a check torch makes the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_get_item = torch.Tensor.__getitem__
_set_item = torch.Tensor.__setitem__
_scatter = torch.Tensor.scatter
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8)


def _plain(*values: Any) -> bool:
    """Whether these are tensors that ``vmap`` and its like don't wrap, the first with a gradient."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return (
        len(tensors) == len(values)
        and values[0].requires_grad
        and not any(torch._C._functorch.is_functorch_wrapped_tensor(value) for value in tensors)
    )


def _indices(index: Any) -> list[torch.Tensor]:
    """The tensors of integers among what a tensor is indexed by: what may name one place twice."""
    parts = index if isinstance(index, tuple | list) else [index]
    return [part for part in parts if isinstance(part, torch.Tensor) and part.dtype in _INTEGERS]


def _kept(values: torch.Tensor, winners: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    """Values, without gradient where another was written behind them."""
    stays = winners == written
    if bool(stays.all()) or values.ndim > written.ndim:
        return values
    values = values.expand(written.shape)
    return torch.where(stays, values, values.detach())


def _written(values: torch.Tensor, held: torch.Tensor, index: Any) -> torch.Tensor:
    """What ``held[index] = values`` writes."""
    places = torch.full(held.shape, -1, device=held.device)
    shape = _get_item(places, index).shape
    written = torch.arange(shape.numel(), device=held.device).reshape(shape)
    _set_item(places, index, written)
    return _kept(values, _get_item(places, index), written)


def _stored(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: torch.Tensor, index: Any, values: Any, *rest: Any, **kwargs: Any) -> Any:
        adds = bool(rest and rest[0]) or bool(kwargs.get("accumulate"))
        if not adds and _plain(values, self) and _indices(index):
            values = _written(values, self, tuple(index) if isinstance(index, list) else index)
        return original(self, index, values, *rest, **kwargs)

    return call


def _scattered(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: torch.Tensor, dim: int, index: Any, src: Any = None, **kwargs: Any) -> Any:
        if _plain(src, self, index) and not kwargs and src.shape == index.shape:
            written = torch.arange(index.numel(), device=index.device).reshape(index.shape)
            places = _scatter(torch.full(self.shape, -1, device=self.device), dim, index, written)
            src = _kept(src, places.gather(dim, index), written)
        return original(self, dim, index, *([] if src is None else [src]), **kwargs)

    return call


def install() -> None:
    """Replaces torch's methods. Called once, before user code is loaded."""
    for name in ("__setitem__", "index_put", "index_put_"):
        setattr(torch.Tensor, name, _stored(getattr(torch.Tensor, name)))
    for name in ("scatter", "scatter_"):
        setattr(torch.Tensor, name, _scattered(getattr(torch.Tensor, name)))
    for name, replace in (("index_put", _stored), ("index_put_", _stored), ("scatter", _scattered)):
        setattr(torch, name, replace(getattr(torch, name)))
