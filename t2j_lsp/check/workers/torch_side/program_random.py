"""Common random numbers of whole programs, torch's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.protocol import NdArray
from t2j_lsp.check.workers.programs.streams import INITIAL, Streams, uniform

from .random import Tape

_CONVOLUTIONS = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
)


class ProgramTape(Tape):
    """Draws that each side works out for itself (see `programs.streams`); none is kept.

    ``moved`` moves the numbers of each draw by this share of their size, up or down.
    """

    def __init__(self, streams: Streams, moved: float | None = None) -> None:
        self.streams = streams
        self.moved = moved
        self._moves = np.random.default_rng(1)
        self._into = False
        self._axes: tuple[int, ...] | None = None
        self._layouts: dict[int, tuple[int, ...]] = {}
        """How the axes of a parameter lie in JAX, by the address of its values."""
        self._wide = False
        """Whether a matrix is drawn that has more columns than rows, as JAX holds it."""

    def own(self, module: nn.Module) -> None:
        """Notes the layouts of a module's parameters, so that later draws into them are those of JAX's layers."""
        for part in module.modules():
            weight = getattr(part, "weight", None)
            if isinstance(weight, nn.Parameter) and not isinstance(weight, nn.parameter.UninitializedParameter):
                if isinstance(part, nn.Linear):
                    self._layouts[weight.data_ptr()] = (1, 0)
                elif type(part) in _CONVOLUTIONS:
                    self._layouts[weight.data_ptr()] = (*range(2, weight.ndim), 1, 0)

    def begin(self, target: torch.Tensor | None) -> None:
        self._into = target is not None
        self._axes = self._layouts.get(target.data_ptr()) if target is not None and self._layouts else None
        if self._wide:
            self._axes = (1, 0)

    def matrix(self, target: torch.Tensor, draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Draws it as JAX holds it: its last axis is the first one of PyTorch, and a wide one is drawn transposed."""
        if target.ndim < 2:
            draw(target)
            return
        axes = self._layouts.get(target.data_ptr(), (*range(1, target.ndim), 0))
        with torch.no_grad():
            turned = target.permute(axes)
            matrix = turned.flatten(0, -2).clone()
            self._wide = len(matrix) < matrix.shape[1]
            try:
                draw(matrix)
            finally:
                self._wide = False
            turned.copy_(matrix.view(turned.shape))

    def add(self, kind: str, values: NdArray, p: Any = None) -> NdArray:
        return values

    def generator(self, kind: str, shape: tuple[int, ...]) -> np.random.Generator:
        return self.streams.generator(self._kind(kind), shape, self.streams.drawer())

    def uniform(self, shape: tuple[int, ...], kind: str = "uniform") -> NdArray:
        return self._numbers(kind, shape)

    def normal(self, shape: tuple[int, ...]) -> NdArray:
        return self._numbers("normal", shape)

    def chances(self, kind: str, shape: tuple[int, ...]) -> NdArray:
        return uniform(self.generator(kind, shape), shape)

    def by_parameters(self, kind: str, shape: tuple[int, ...], parameters: Any) -> NdArray:
        values = super().by_parameters(kind, shape, parameters)
        return values if self.moved is None or kind != "gamma" else moved(values, self.moved, self._moves)

    def slope_of_gamma(self, concentration: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """By differences of the distribution function: JAX's is exact, and torch's is not."""
        a, x = concentration.double(), values.double()
        step = 1e-3 * a
        one, two = ((torch.igamma(a + n * step, x) - torch.igamma(a - n * step, x)) / (2 * n * step) for n in (1, 2))
        density = torch.exp((a - 1) * x.log() - x - torch.lgamma(a))
        return torch.nan_to_num((two - 4 * one) / 3 / density, 0.0, 0.0, 0.0).to(concentration)

    def _kind(self, kind: str) -> str:
        return f"{INITIAL}{kind}" if self._into and self.streams.constructing else kind

    def _numbers(self, kind: str, shape: tuple[int, ...]) -> NdArray:
        axes = self._axes if self._axes is not None and len(self._axes) == len(shape) else None
        drawn = tuple(shape[i] for i in axes) if axes else shape
        values = self.streams.draw(self._kind(kind), drawn, self.streams.drawer())
        values = values.transpose(np.argsort(axes)) if axes else values
        return values if self.moved is None else moved(values, self.moved, self._moves)


def moved(values: NdArray, by: float, rng: np.random.Generator) -> NdArray:
    """Numbers moved up or down by a share of their size."""
    return values * (1 + by * rng.choice((-1.0, 1.0), np.shape(values)))
