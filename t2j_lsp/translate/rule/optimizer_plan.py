"""What the training code of a file asks of the optimizers that it makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Group:
    """One parameter group of a PyTorch optimizer."""

    label: str
    """Its name among the labels of ``optax.multi_transform``."""
    condition: str | None
    """Which parameters are in it, as an expression of ``name`` and ``parameter``; None for all others.

    ``name`` is the path in Flax. A condition for which that won't do has ``torch_name``, PyTorch's, in its place.
    """
    options: Mapping[str, ast.expr] = field(default_factory=dict)
    """The options it sets for itself: ``lr``, ``weight_decay``, ..."""
    frozen: bool = False
    """Whether it holds the parameters that the optimizer doesn't get."""

    @property
    def reads(self) -> set[str]:
        """The names in its condition."""
        return set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", self.condition or ""))


@dataclass(frozen=True)
class OptimizerPlan:
    """What is known of the optimizer that a call makes, or of the one that a scheduler's call is given."""

    target: str = ""
    """The module, or tuple of modules, whose parameters it updates; empty where that isn't known."""
    part: str = ""
    """The part of the target that it updates; empty for all of it."""
    flagged: bool = False
    """Whether it updates what isn't frozen when it is made, by a flag of the variable."""
    of_tensors: bool = False
    """Whether it updates bare tensors, in place of a module's parameters."""
    leaves: tuple[str, ...] = ()
    """The variables that these are in, where an update can give them new values."""
    state: str = ""
    """The variable that the state of optax is in, for bare tensors."""
    made_by: str = ""
    """The parameter that the optimizer's class is passed for, where it is made by such a value."""
    reason: str = ""
    """Why the target isn't known."""
    injected: tuple[str, ...] = ()
    """Hyperparameters that the program changes while it runs, by their names in torch: ``lr``, ``momentum``, ..."""
    schedule: str | None = None
    """A schedule of updates that takes the place of the learning rate: its variable."""
    momentum: str = ""
    """The variable of one that takes the place of the momentum, if it changes too."""
    groups: tuple[Group, ...] = ()
    """Parameter groups, the first that applies counts; empty for one group."""
    undecayed: str = ""
    """The condition on the names of parameters that have no gradient in PyTorch, which a zero in JAX would decay."""
    rate: str = ""
    """For a scheduler: the learning rate that its optimizer starts with."""
    holds_rate: bool = False
    """For a scheduler: whether that has another value later: it is read once, when the scheduler is made."""
    rates: tuple[tuple[str, str], ...] = ()
    """For a scheduler: the learning rates that its optimizer's groups start with, by their labels, if they differ."""
    apart: bool = False
    """Whether the program sets or reads the learning rates of its groups one by one."""
    cycled: str = ""
    """For a scheduler: the option of its optimizer that is a momentum, ``momentum`` or ``betas``."""
    begins: bool = True
    """For a scheduler: whether it counts from the first step on."""
    alone: bool = False
    """For a scheduler: only its schedule is wanted, for optax or for a scheduler made of others."""


def rate_in_state(state: str, label: str, several: bool) -> str:
    """The learning rate that a state of optax holds, as code: of the group with a label, else of any of several."""
    if label:
        return f'optax.tree.get({state}.inner_states[{label}], "learning_rate").item()'
    if several:
        return f'optax.tree.get_all_with_path({state}, "learning_rate")[0][1].item()'
    return f'optax.tree.get({state}, "learning_rate").item()'
