"""What torch computes otherwise than exactly, or otherwise on a card than on the CPU, from operations that don't.

Activations whose float64 gradients torch computes with float32 constants: ``hardsigmoid`` multiplies its gradient by
float32's 1/6 and ``celu`` by float32's 1/alpha, up to 1e-8 of the scale, more than a right conversion may differ by. On
a card, so does ``hardswish``, its value too. Values, and gradients at the kinks, stay torch's. Of equal elements,
``median`` and its like choose another on a card than on the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from . import device as torch_device


def _hardsigmoid(input: torch.Tensor) -> torch.Tensor:
    return functional.relu6(input + 3.0) / 6.0


def _hardswish(input: torch.Tensor) -> torch.Tensor:
    return torch.where(input <= -3, torch.zeros_like(input), torch.where(input < 3, input * (input + 3.0) / 6.0, input))


def _celu(input: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    return torch.where(input > 0, input, alpha * torch.expm1(input.clamp(max=0) / alpha))


def _in_float64(original: Callable[..., Any], exact: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(input: torch.Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if input.dtype is not torch.float64:
            return original(input, *args, **kwargs, **({"inplace": True} if inplace else {}))
        if args and isinstance(args[-1], bool):
            args, inplace = args[:-1], args[-1]
        if inplace:
            return input.copy_(exact(input.clone(), *args, **kwargs))  # whose gradient is computed from what was there
        return exact(input, *args, **kwargs)

    return call


def _chosen_as_on_the_cpu(original: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A function that returns elements along a dim and their indices: of equal elements it takes the CPU's.

    ``names`` are its parameters behind the input.
    """

    @functools.wraps(original)
    def call(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        if (
            "out" in given
            or not isinstance(chosen := original(input.detach().cpu(), **given), tuple)
            or input.ndim == 0
        ):
            return original(input, *args, **kwargs)
        dim, indices = given.get("dim", -1), chosen[1].to(input.device)
        if given.get("keepdim"):
            return type(chosen)((input.gather(dim, indices), indices))
        return type(chosen)((input.gather(dim, indices.unsqueeze(dim)).squeeze(dim), indices))

    return call


CHOOSING = {
    "median": ("dim", "keepdim"),
    "nanmedian": ("dim", "keepdim"),
    "kthvalue": ("k", "dim", "keepdim"),
    "mode": ("dim", "keepdim"),
}
"""The functions that choose one of equal elements, with their parameters behind the input."""


def install() -> None:
    """Replaces torch's functions. Called once, before user code is loaded."""
    functional.hardsigmoid = _in_float64(functional.hardsigmoid, _hardsigmoid)
    if torch_device.on_card():
        functional.hardswish = _in_float64(functional.hardswish, _hardswish)
        for name, names in CHOOSING.items():
            call = _chosen_as_on_the_cpu(getattr(torch, name), *names)
            setattr(torch, name, call)
            setattr(torch.Tensor, name, call)
    functional.celu = _in_float64(functional.celu, _celu)
    torch.celu = _in_float64(torch.celu, _celu)
