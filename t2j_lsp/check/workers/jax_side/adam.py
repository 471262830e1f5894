"""The optimizer of a check's own steps."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx

from .pairing import names_of, value_of


class Adam:
    """torch.optim.Adam (https://arxiv.org/abs/1412.6980, algorithm 1) in numpy, so that nothing has to be compiled."""

    def __init__(self) -> None:
        self.count = 0
        self.moments: dict[str, tuple[Any, Any]] = {}

    def update(self, model: nnx.Module, gradients: dict[str, Any]) -> None:
        """One step with the settings of the torch side, in place."""
        self.count += 1
        done: set[int] = set()
        for name, entry in names_of(model).items():
            if name not in gradients or all(id(v) in done for v in entry.variables):
                continue
            done.update(map(id, entry.variables))
            gradient = gradients[name]
            zeros = np.zeros_like(gradient), np.zeros(gradient.shape, gradient.real.dtype)
            first, second = self.moments.get(name, zeros)
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * (gradient * np.conj(gradient)).real
            self.moments[name] = first, second
            scale = np.sqrt(second / (1 - 0.999**self.count)) + 1e-3
            value = value_of(entry) - 1e-2 * (first / (1 - 0.9**self.count)) / scale
            for variable, part in zip(entry.variables, entry.from_torch(value), strict=True):
                variable.set_value(jnp.asarray(part))


def squared_norm(model: nnx.Module, gradients: dict[str, Any]) -> float:
    """The sum of squares of all gradients, that of a parameter with several names once."""
    total, counted = 0.0, defaultdict[tuple[int, ...], list[Any]](list)
    for name, entry in names_of(model).items():
        if name in gradients:
            gradient, same = gradients[name], counted[tuple(map(id, entry.variables))]
            if not any(np.array_equal(gradient, other, equal_nan=True) for other in same):
                same.append(gradient)
                total += float((np.abs(gradient).astype(np.float64) ** 2).sum())
    return total
