"""Losses that are only given class labels: no probabilities to ask for, and with one axis the classes on the last."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .constants import folded
from .uses import HelperUses

_PROBABILITIES = "target.shape == logits.shape"
"""How ``cross_entropy`` tells probabilities from labels."""
_SAID = ", or probabilities of the shape of `logits`"
_AXES = {"cross_entropy": "min(logits.ndim - 1, 1)", "nll_loss": "min(log_probs.ndim - 1, 1)"}
"""Where the classes are, which is the last axis if labels have one."""
_WEIGHT = r"weight\.reshape\(-1, \*\[1\] \* \(\w+\.ndim - 1 - axis\)\)"
"""A weight for each class, with axes of 1 for those behind the classes."""


def label_axes(
    uses: Mapping[str, HelperUses], written: Mapping[str, str], labels: Mapping[str, int | None]
) -> tuple[tuple[str, int | None], ...]:
    """The losses that only the user's code calls, or another of them, always with labels, and these labels' axes."""
    losses: dict[str, int | None] = {}
    for name in _AXES:
        if name not in uses or not uses[name].known or not uses[name].calls:
            continue
        homes = {call.home for call in uses[name].calls if call.home is not None}
        called = {_called(call.node.func, name, written) for call in uses[name].calls if call.home is None}
        if homes <= losses.keys() and called <= labels.keys():
            axes = {losses[one] for one in homes} | {labels[one] for one in called}
            losses[name] = axes.pop() if len(axes) == 1 else None
    return tuple(losses.items())


def _called(func: object, name: str, written: Mapping[str, str]) -> str:
    """What a call calls, without what it is an attribute of."""
    said: str = getattr(func, "id", "") or getattr(func, "attr", "")
    return name if said == written.get(name, name) else said


def of_labels(text: str, name: str, axes: int | None) -> str:
    """The text of a loss that is given labels of so many axes."""
    text = text.replace(_PROBABILITIES, "False").replace(_SAID, "")
    if axes == 1:
        text = re.sub(_WEIGHT, "weight", text).replace(_AXES[name], "-1")
    return folded(text, ())
