"""What rounding makes of a program's values: torch once more from a perturbed state, and rounding otherwise."""

from __future__ import annotations

from dataclasses import replace

from .messages import Observations, TorchObserved
from .process.requests import WorkerRequests
from .requests import TorchRequest
from .verdict.generation import calls_of
from .verdict.stages import perturbed

ROUNDINGS = 5
"""How often torch rounds otherwise: each run leaves a value on its side of a step in half of all cases."""


PERTURBATIONS = 3
"""From how many perturbed states, while steps part: one may leave a parameter of few elements where it was."""


class Rounding:
    """Asks torch what rounding does to one object, called with the same arguments."""

    def __init__(self, requests: WorkerRequests, call: TorchRequest) -> None:
        self.requests = requests
        self.call = call

    def moved(self, torch: TorchObserved, steps: int, seed: int) -> Observations:
        """What torch observes from a perturbed state, in float64."""
        state, calls = perturbed(torch.state, seed), calls_of(torch)
        moved = self.requests.observe_torch(
            replace(self.call, wide=True, state=state, cotangents=torch.cotangents, steps=steps, generate=calls)
        )
        return moved.observed | (moved.generate.observed if moved.generate else {})

    def otherwise(self, torch: TorchObserved, wide: bool) -> list[Observations]:
        """What torch observes rounding otherwise: a value on the edge of a step falls on either side."""
        request = replace(self.call, wide=wide, state=torch.state, cotangents=torch.cotangents)
        asked = (replace(request, rounding=seed) for seed in range(ROUNDINGS))
        return [self.requests.observe_torch(one).observed for one in asked]
