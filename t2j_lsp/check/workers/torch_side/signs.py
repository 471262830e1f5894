"""Gives the vectors of ``eigh`` and ``svd`` the signs that the JAX side gives them, too.

Both libraries leave them open, and a driver's choice changes with the matrix. A conversion that gets other signs is
right, so in a check both sides turn each vector to the same side of a fixed plane.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def _signs(columns: torch.Tensor) -> torch.Tensor:
    """The factor of each column: 1 or -1; of complex ones, whose phases are open, 1."""
    if columns.is_complex() or not columns.numel():
        return torch.ones_like(columns[..., 0, :])
    places = torch.arange(columns.shape[-2], dtype=columns.dtype, device=columns.device)
    side = (columns.detach() * torch.cos(1 + places * places)[:, None]).sum(-2)
    return torch.where(side < 0, -1.0, 1.0).to(columns.dtype)


def _eigh(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if "out" in kwargs:
            return result
        values, vectors = result
        return type(result)((values, vectors * _signs(vectors)[..., None, :]))

    return call


def _svd(original: Callable[..., Any], transposed: bool) -> Callable[..., Any]:
    """``transposed`` says whether the right vectors are rows."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if "out" in kwargs:
            return result
        left, values, right = result
        count = values.shape[-1]
        signs = _signs(left[..., :count])
        left = torch.cat([left[..., :count] * signs[..., None, :], left[..., count:]], -1)
        rows = right if transposed else right.mT
        rows = torch.cat([rows[..., :count, :] * signs[..., :, None], rows[..., count:, :]], -2)
        return type(result)((left, values, rows if transposed else rows.mT))

    return call


def install() -> None:
    """Replaces torch's functions. Called once, before user code is loaded."""
    torch.linalg.eigh = _eigh(torch.linalg.eigh)
    torch.linalg.svd = _svd(torch.linalg.svd, transposed=True)
    for owner in (torch, torch.Tensor):
        setattr(owner, "svd", _svd(owner.svd, transposed=False))  # noqa: B010 - mypy knows no such attribute
