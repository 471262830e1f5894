"""One update of a training loop as a plan: its losses, what it optimizes, what moves into the train step."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from t2j_lsp.translate.rule.optimizer_plan import Group
from t2j_lsp.translate.training.program.slice import UpdateSlice
from t2j_lsp.translate.training.program.step_calls import Item, StepCall

Mode = Literal["fused", "conditional", "accumulated", "stored", "apart"]
"""``stored``: the step only gives the gradients, which other code of the program reads. ``apart``: it gives them, and
the update is made behind code that may skip it.
"""
FLAGGED = (
    "Parameters are frozen by requires_grad, which an optimizer skips. In JAX pick the trained ones by a filter where "
    "the gradient is taken: nnx.DiffState(0, trained)."
)
NOT_ZEROED = "The gradients aren't zeroed in this function, so they add up from somewhere else."


@dataclass
class Optimized:
    """An optimizer that a step updates by."""

    text: str
    modules: tuple[str, ...]
    sure: bool = True
    """Whether the file shows that these are its modules."""
    groups: tuple[Group, ...] = ()
    state: str = ""
    """The variable with optax's state, where it updates bare tensors."""
    part: bool = False
    """Whether the optimizer says which parameters of its module it updates, ``optimizer.wrt``."""
    flagged: bool = False
    """Whether these are what isn't frozen, by a flag of the variable, when the optimizer is made."""
    alone: bool = False
    """Whether it updates one parameter outside of modules, which it takes in a tuple."""


@dataclass(frozen=True)
class Measure:
    """What a statement computes with the results of a step, which the step gives in its place."""

    name: str
    value: ast.expr
    node: ast.stmt


@dataclass
class Update:
    """What is known of one update before it is written."""

    mode: Mode
    items: Sequence[Item]
    slice: UpdateSlice
    losses: list[tuple[int, ast.expr]]
    optimized: list[Optimized]
    clips: list[StepCall]
    first: int
    last: int
    """The items that the update takes up, first to last."""
    live: list[str] = field(default_factory=list)
    """Variables that the step has to give back, in the order they are written."""
    saved: dict[tuple[int, str], str] = field(default_factory=dict)
    """What the values that the slice keeps are called."""
    condition: ast.If | None = None
    grads: str = ""
    """The variable that gradients are added up in, or wait in."""
    zeros: str = ""
    """The variable of zeros that they begin with, if they begin again."""
    step: int = 0
    """The item of the step, where the update is made in its place."""
    name: str = ""
    """What the compiled function is called."""
    once: str = ""
    """What it would do only once if it were compiled: it is traced at each call."""
    measures: Sequence[Measure] = ()
    loops: Sequence[int] = ()
    """Items behind the update that go on with its parameters, in the step."""
    edited: bool = False
    """Whether gradients that add up are changed by more than clipping."""
    arrays: bool = False
    """Whether gradients add up as plain arrays, which functions take that are bound to their modules."""
    whole: bool = False
    """Whether all statements in front of it are part of it, in their order."""
