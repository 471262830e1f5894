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

_LARGE = 48
_IMAGES = re.compile(
    r"(?:im(?:g|age)?|input|video|frames?)_?(?:size|resolution|height|width)$|^(?:height|width|resolution)$"
)
"""What sizes of inputs are called; the modules inside follow them."""
_WIDTHS = re.compile(r"dim|hidden|features|planes")
"""Sizes inside, which mostly leave the inputs as they are."""
_SIZES = re.compile(rf"{_IMAGES.pattern}|{_WIDTHS.pattern}|channels|width|length$|_len$")


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
    if not changed:
        return None
    said = ", ".join(f"{name}={few}" for name, few in changed.items())
    return replace(init, kwargs=init.kwargs | changed), f"fewer blocks: {said}"


def lighter(target: type, init: Arguments, made: Callable[[Arguments], Any]) -> list[tuple[Arguments, str, bool]]:
    """Constructor arguments for a program that takes too much time or memory to run: the lightest first.

    Sizes are an eighth, of all that is called one, of widths inside or of images alone, and blocks fewer, as far as
    modules of the same classes stand inside. With each, how it is said, and whether inputs stay what they were.
    """
    before, lighter_ones = set(_modules(made(init))), list[tuple[Arguments, str, bool]]()
    fewer = dict(_candidates(target, init))
    for names, stays in ((_SIZES, False), (_WIDTHS, True), (_IMAGES, False), (None, True)):
        sizes = _sizes(target, init, names) if names is not None else {}
        changed = sizes | fewer
        candidate = replace(init, kwargs=init.kwargs | changed)
        try:
            same = set(_modules(made(candidate))) == before
        except Exception:  # noqa: BLE001 - the program need not take it
            continue
        known = ((other, left) for other, _, left in lighter_ones)
        if changed and same and (candidate, stays) not in known:
            said = ", ".join(f"{name}={value}" for name, value in changed.items())
            lighter_ones.append((candidate, f"smaller sizes: {said}" if sizes else f"fewer blocks: {said}", stays))
    return lighter_ones


def _sizes(target: type, init: Arguments, names: re.Pattern[str]) -> dict[str, Any]:
    """The constructor's large sizes, by name: as an eighth of them, and a multiple of 4."""
    smaller: dict[str, Any] = {}
    for name, value in _settings(target, init):
        values = value if isinstance(value, list | tuple) else [value]
        if names.search(name) and values and all(type(v) is int and v >= _LARGE for v in values):
            small = [max(v // 8 // 4 * 4, 16) for v in values]
            smaller[name] = type(value)(small) if isinstance(value, list | tuple) else small[0]
    return smaller


def _settings(target: type, init: Arguments) -> Iterator[tuple[str, Any]]:
    """What a constructor's parameters are by name, given or by default."""
    for parameter in _parameters(target)[len(init.args) :]:
        yield parameter.name, init.kwargs.get(parameter.name, parameter.default)


def _parameters(target: type) -> list[inspect.Parameter]:
    """The parameters of a constructor, with its base's where it hands on those that it collects, ``**kwargs``."""
    parameters: dict[str, inspect.Parameter] = {}
    for cls in inspect.getmro(target):
        if "__init__" not in vars(cls):
            continue
        try:
            own = [*inspect.signature(cls.__init__).parameters.values()][1:]  # type: ignore[misc]
        except (TypeError, ValueError):
            break
        collects = {p.kind for p in own} & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
        for parameter in own:
            if parameter.kind not in collects:
                parameters.setdefault(parameter.name, parameter)
        if inspect.Parameter.VAR_KEYWORD not in collects:
            break
    return [*parameters.values()]


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
    for name, value in _settings(target, init):
        if not _COUNTS.search(name):
            continue
        if isinstance(value, list | tuple) and value and all(type(v) is int for v in value) and max(value) > FEW:
            yield name, type(value)(min(v, FEW) for v in value)
        elif type(value) is int and value > FEW:
            yield name, FEW
