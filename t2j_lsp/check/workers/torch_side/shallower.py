"""Fewer blocks for a program that takes long: constructor arguments that only say how often one is repeated."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from t2j_lsp.check.inputs import Arguments

from .smaller import watched

FEW = 2
"""Blocks that stay of those that are repeated: a first one, and one that follows another."""
_COUNTS = re.compile(r"(?:depth|layer|block|repeat|cell|stack)s?$|^(?:n|num)_\w*(?:layer|block|repeat)")
"""What arguments that count blocks are called. A program may become slower with less of something else: a patch."""


def shallower(
    target: type,
    init: Arguments,
    made: Callable[[Arguments], tuple[Any, Callable[[], None]]],
    in_time: Callable[[], bool],
) -> tuple[Arguments, str] | None:
    """Constructor arguments with which fewer layers of the same classes run, and how that is said; None if none are.

    ``made`` builds the module with arguments, and gives it with a call of it. Both raise what the program raises.
    """
    before = _layers(made, init)
    changed: dict[str, Any] = {}
    for name, few in _candidates(target, init):
        if not in_time():
            break
        candidate = replace(init, kwargs=init.kwargs | changed | {name: few})
        try:
            after = _layers(made, candidate)
        except Exception:  # noqa: BLE001 - the program need not take it
            continue
        if len(after) < len(before) and set(after) == set(before):
            before, changed = after, changed | {name: few}
    return _said(init, changed)


def shallower_as_built(target: type, init: Arguments, made: Callable[[Arguments], Any]) -> tuple[Arguments, str] | None:
    """The same of a program that takes too much memory to run: with fewer modules of the same classes inside."""
    before, changed = _modules(made(init)), dict[str, Any]()
    for name, few in _candidates(target, init):
        try:
            after = _modules(made(replace(init, kwargs=init.kwargs | changed | {name: few})))
        except Exception:  # noqa: BLE001 - the program need not take it
            continue
        if len(after) < len(before) and set(after) == set(before):
            before, changed = after, changed | {name: few}
    return _said(init, changed)


def _said(init: Arguments, changed: dict[str, Any]) -> tuple[Arguments, str] | None:
    if not changed:
        return None
    said = ", ".join(f"{name}={few}" for name, few in changed.items())
    return replace(init, kwargs=init.kwargs | changed), f"fewer blocks: {said}"


def _modules(model: Any) -> list[type]:
    return [type(module) for module in model.modules()] if isinstance(model, nn.Module) else []


def _layers(made: Callable[[Arguments], tuple[Any, Callable[[], None]]], init: Arguments) -> list[tuple[type, ...]]:
    """The classes of each layer that is called and of what it stands in, in the order of the calls."""
    model, run = made(init)
    if not isinstance(model, nn.Module):
        return []
    with watched(model) as calls:
        run()
    modules = dict(model.named_modules())
    names = [name.split(".") for name, _ in calls]
    return [tuple(type(modules[".".join(n[:i])]) for i in range(1, len(n) + 1)) for n in names]


def _candidates(target: type, init: Arguments) -> Iterator[tuple[str, Any]]:
    """The constructor's counts above two, and lists with such ones, by name: as twos."""
    try:
        parameters = [*inspect.signature(target).parameters.values()]
    except (TypeError, ValueError):
        return
    for parameter in parameters[len(init.args) :]:
        value = init.kwargs.get(parameter.name, parameter.default)
        if not _COUNTS.search(parameter.name):
            continue
        if isinstance(value, list | tuple) and value and all(type(v) is int for v in value) and max(value) > FEW:
            yield parameter.name, type(value)(min(v, FEW) for v in value)
        elif type(value) is int and value > FEW:
            yield parameter.name, FEW
