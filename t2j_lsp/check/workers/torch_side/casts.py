"""Makes floats that an integer type doesn't hold its nearest number, as JAX does, and NaN zero.

What torch makes of them is undefined, and differs between processors: -1.0 as uint8 is 255 here and 0 there. A
conversion that makes something else of them is right, so in a check torch makes what JAX does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_INTEGERS = {
    "byte": torch.uint8,
    "char": torch.int8,
    "short": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
}
"""Methods, and what they make."""
_WHOLE = frozenset(_INTEGERS.values())


def within(values: Any, dtype: torch.dtype | None) -> Any:
    """Floats that are to be integers, those that are beyond the type put at its ends; anything else as it is."""
    if dtype not in _WHOLE or type(values) not in (torch.Tensor, nn.Parameter) or not values.is_floating_point():
        return values
    if torch._C._functorch.is_functorch_wrapped_tensor(values):
        return values
    held, limits = values.detach(), torch.iinfo(dtype)
    above, below = held >= float(limits.max) + 1, held <= float(limits.min) - 1
    if not bool((above | below | held.isnan()).any()):
        return values
    whole = torch.where(above | below | held.isnan(), 0, held).to(dtype)
    return torch.where(above, limits.max, torch.where(below, limits.min, whole)).to(dtype)


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        asked = [kwargs.get("dtype"), *args[:2], kwargs.get("other")]
        dtypes = [one.dtype if isinstance(one, torch.Tensor) else one for one in asked]
        dtype = next((one for one in dtypes if isinstance(one, torch.dtype)), None)
        return original(within(self, dtype), *args, **kwargs)

    return call


def _named(original: Callable[..., Any], dtype: torch.dtype) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return original(within(self, dtype), *args, **kwargs)

    return call


def _copied(original: Callable[..., Any]) -> Callable[..., Any]:
    """``x.copy_(values)``."""

    @functools.wraps(original)
    def call(self: torch.Tensor, values: Any, *rest: Any, **kwargs: Any) -> Any:
        return original(self, within(values, self.dtype), *rest, **kwargs)

    return call


def _stored(original: Callable[..., Any]) -> Callable[..., Any]:
    """``x[index] = values``."""

    @functools.wraps(original)
    def call(self: torch.Tensor, index: Any, values: Any) -> Any:
        return original(self, index, within(values, self.dtype))

    return call


def install() -> None:
    """Replaces torch's methods. Called once, before user code is loaded."""
    for name, dtype in _INTEGERS.items():
        setattr(torch.Tensor, name, _named(getattr(torch.Tensor, name), dtype))
    for name in ("to", "type"):
        setattr(torch.Tensor, name, _to(getattr(torch.Tensor, name)))
    for name, replaced in (("copy_", _copied), ("__setitem__", _stored)):
        setattr(torch.Tensor, name, replaced(getattr(torch.Tensor, name)))
