"""How losses were once told to reduce: ``size_average`` and ``reduce``, which overrule ``reduction``."""

from __future__ import annotations

from collections.abc import Mapping

SWITCHES = ("size_average", "reduce")


def is_said(switches: Mapping[str, object]) -> bool:
    """Whether the values of the switches say a reduction: constants, and not all of them None."""
    values = switches.values()
    return any(value is not None for value in values) and all(isinstance(v, bool) or v is None for v in values)


def reduction_said(switches: Mapping[str, object]) -> str:
    """The ``reduction`` that constant values of the switches mean."""
    if switches.get("reduce") is False:
        return "none"
    return "sum" if switches.get("size_average") is False else "mean"
