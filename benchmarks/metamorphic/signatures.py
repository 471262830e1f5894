"""The parameters of torch's functions and layers, in order."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass

import torch

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.record import REGISTRY


@dataclass(frozen=True)
class Parameter:
    """A parameter that can be given by place and by name, and the text of its default."""

    name: str
    default: str | None = None


_PLAIN = (bool, int, float, str, type(None))


@functools.cache
def parameters(full: str) -> tuple[Parameter, ...]:
    """The parameters of ``torch.nn.Linear`` that take their arguments by place or by name, as far as they go.

    A layer or function written in Python says so itself; for the others, the signatures that the rules state are
    taken, which the tests hold against PyTorch's. Where there are several, nothing is sure.
    """
    value: object = torch
    for part in full.split(".")[1:]:
        value = getattr(value, part, None)
    if not full.startswith("torch.") or not callable(value):
        return ()
    if isinstance(value, type) and not issubclass(value, torch.nn.Module):
        return ()
    try:
        return tuple(_inspected(value))
    except (TypeError, ValueError):
        return _stated(full)


def _inspected(value: object) -> list[Parameter]:
    assert callable(value)
    known: list[Parameter] = []
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ValueError("its arguments have no names")
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            break
        plain = parameter.default is not parameter.empty and isinstance(parameter.default, _PLAIN)
        known.append(Parameter(parameter.name, repr(parameter.default) if plain else None))
    return known


def _stated(full: str) -> tuple[Parameter, ...]:
    load_rules()
    rule = REGISTRY.rules.get(full)
    if rule is None or len(rule.signatures) != 1 or rule.name != full:
        return ()
    stated = rule.signatures[0].parameters or ()
    if any(p.kind == "star" for p in stated):
        return ()
    return tuple(Parameter(p.name, p.default) for p in stated if p.kind == "normal")
