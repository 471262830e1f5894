"""Classes of optimizers that are passed as values: ``Trainer(model, torch.optim.Adam)``."""

from __future__ import annotations

import re

from .facts import Fact, Qual
from .record import REGISTRY


def transformation_of(fact: Fact) -> str:
    """The function of optax that stands for a class of optimizers; "" where none has the arguments, or for others."""
    rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
    match = re.match(r"nnx\.Optimizer\(model, (optax\.(?!chain)\w+)\(", rule.jax or "") if rule is not None else None
    return match[1] if match is not None else ""
