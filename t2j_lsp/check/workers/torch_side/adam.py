"""The optimizer of a check's own steps: torch's import its compiler, which takes as long as the rest of torch."""

from __future__ import annotations

from collections.abc import Iterable

import torch


class Adam:
    """torch.optim.Adam (https://arxiv.org/abs/1412.6980, algorithm 1), with the settings of the JAX side's."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self.parameters = list(parameters)
        self.count = 0
        self.moments: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """One step, in place; what has no gradient stays."""
        self.count += 1
        for number, parameter in enumerate(self.parameters):
            gradient = parameter.grad
            if gradient is None:
                continue
            square = (gradient * gradient.conj()).real
            first, second = self.moments.get(number, (torch.zeros_like(gradient), torch.zeros_like(square)))
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * square
            self.moments[number] = first, second
            scale = (second / (1 - 0.999**self.count)).sqrt() + 1e-3
            parameter -= 1e-2 * (first / (1 - 0.9**self.count)) / scale
