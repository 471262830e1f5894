"""Classes of optimizers of the program's own are functions that make transformations of optax, with the same steps."""

from __future__ import annotations

import pytest

from .optimizer_classes import program
from .training_sides import TOLERANCE, trained


@pytest.mark.parametrize(
    "call",
    [
        "Lion(model.parameters(), lr=1e-2, weight_decay=0.1)",
        "Lion(model.parameters())",
        "Lion(lr=1e-2, params=model.parameters(), betas=(0.5, 0.7))",
        "Momentum(model.parameters(), 0.05)",
        "Momentum(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True)",
        "Momentum(model.parameters(), lr=0.05, momentum=0.9, dampening=0.3)",
        "MyAdam(model.parameters(), lr=0.01)",
        "MyAdam(model.parameters(), lr=0.01, weight_decay=0.1, amsgrad=True)",
        "Rectified(model.parameters(), lr=0.01, weight_decay=0.1)",
        "Rectified(model.parameters(), lr=0.01, degenerated_to_sgd=False)",
        "Lamb(model.parameters(), lr=0.01, weight_decay=0.1)",
        "Lamb(model.parameters(), lr=0.01, clamp=0.5, adam=True)",
        "Counted(model.parameters())",
        "Counted(model.parameters(), rho=0.5, warmup=20)",
    ],
)
def test_it_makes_the_steps_of_pytorch(call: str) -> None:
    trained(program(call), tolerance=1e-5 if call.startswith("Rectified") else TOLERANCE)  # of .float()
