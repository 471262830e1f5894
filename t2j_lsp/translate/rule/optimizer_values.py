"""Classes of optimizers that are passed as values: ``Trainer(model, torch.optim.Adam)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Set

from .facts import Fact, Qual
from .record import REGISTRY


def transformation_of(fact: Fact) -> str:
    """The function of optax that stands for a class of optimizers; "" where none has the arguments, or for others."""
    rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
    match = re.match(r"nnx\.Optimizer\(model, (optax\.(?!chain)\w+)\(", rule.jax or "") if rule is not None else None
    return match[1] if match is not None else ""


def class_for_all(facts: Set[Fact]) -> Fact | None:
    """The class that a parameter is read as which is given these: the only one, or one that optax has the defaults of.

    None where they aren't all classes of optimizers.
    """
    if not facts or not all(map(transformation_of, facts)):
        return None
    named = sorted(facts, key=repr)
    return next((f for f in named if len(facts) == 1 or not extra_defaults(f)), None)


def extra_defaults(fact: Fact) -> str:
    """What this function is given where PyTorch's class is given a rate alone: ``weight_decay=0.01`` of AdamW."""
    rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
    match = re.search(r", (optax\.\w+\([^()]*\)),", rule.jax or "") if rule is not None else None
    call = ast.parse(match[1], mode="eval").body if match is not None else None
    return ", ".join(ast.unparse(k) for k in call.keywords) if isinstance(call, ast.Call) else ""
