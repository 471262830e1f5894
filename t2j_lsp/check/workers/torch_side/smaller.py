"""Smaller inputs for a program that takes long: fewer examples, shorter axes, as far as it runs and they still tell."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.inputs import DTYPES, Arguments, ArraySpec, map_values

from .lengths import BATCHES

SLOW = 0.5
"""Seconds of processor time for two calls in float32, from which inputs are made smaller."""
_PARTS = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Of the lengths of axes; with the last, only the batch is smaller."""
_SHORT, _STEP = 8, 8
"""Axes up to this length stay; and what axes are a multiple of, where a program needs them even."""
_LEAST = 5
Calls = list[tuple[str, tuple[int, ...]]]


def smaller(
    model: Any,
    arguments: Arguments,
    run: Callable[[Arguments], None],
    in_time: Callable[[], bool],
    least: float = 0.0,
) -> tuple[Arguments, str] | None:
    """The smallest of the candidates with which ``run`` succeeds and every layer has something to mix, and the change.

    ``run`` draws and calls, and raises what the program raises. Nothing is changed where it takes less than ``least``
    seconds of processor time: what a first call took may have been torch's own start.
    """
    began = time.process_time()
    with watched(model) as before:
        run(arguments)
    if time.process_time() - began < least:
        return None
    for candidate in _candidates(arguments):
        if not in_time():
            return None
        with watched(model) as after:
            try:
                run(candidate)
            except Exception:  # noqa: BLE001 - the program need not take it
                continue
        if _tells(before, after):
            return candidate, _change(arguments, candidate)
    return None


@contextmanager
def watched(model: Any) -> Iterator[Calls]:
    """The layers in the order of their calls, with the shapes of their inputs."""
    calls: Calls = []
    handles = []

    def note(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
            calls.extend((name, tuple(a.shape)) for a in args[:1] if isinstance(a, torch.Tensor))

        return hook

    try:
        for name, module in model.named_modules() if isinstance(model, nn.Module) else ():
            if not any(True for _ in module.children()):
                handles.append(module.register_forward_pre_hook(note(name)))
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _tells(before: Calls, after: Calls) -> bool:
    """Whether the same layers ran, and no axis that had several positions in front of one has only one now."""
    if [name for name, _ in before] != [name for name, _ in after]:
        return False
    pairs = ((a, b) for (_, a), (_, b) in zip(before, after, strict=True))
    return all(len(a) == len(b) and all(n == 1 or m > 1 for n, m in zip(a, b, strict=True)) for a, b in pairs)


def _candidates(arguments: Arguments) -> Iterator[Arguments]:
    """Smaller arguments, the smallest first: axes that all differ, then multiples, then with equal axes equal."""
    shapes = _shapes(arguments)
    size = sum(map(math.prod, shapes))
    known: set[str] = set()
    for part in _PARTS:
        for even in (False, True):
            for alike in (False, True):
                lengths = _lengths(shapes, part, even, alike)
                shorter = _shortened(arguments, lengths, alike)
                made = _shapes(shorter)
                if str(made) not in known and sum(map(math.prod, made)) <= 0.8 * size:
                    known.add(str(made))
                    yield shorter


def _key(axis: int, length: int, alike: bool) -> tuple[int, int]:
    return (0 if alike else axis, length)


def _free(shape: tuple[int, ...]) -> range:
    """The axes that may be shorter: those of space and time behind the channels, or a sequence's."""
    return range(2 if len(shape) > 3 else 1, len(shape) if len(shape) != 3 else 2)


def _lengths(shapes: list[tuple[int, ...]], part: float, even: bool, alike: bool) -> dict[tuple[int, int], int]:
    """New lengths by axis and length; with ``alike`` by length alone, for programs that want squares."""
    keys = dict.fromkeys(_key(a, s[a], alike) for s in shapes for a in _free(s) if s[a] > _SHORT)
    made: dict[tuple[int, int], int] = {}
    for key in keys if part < 1 else ():
        length = key[1]
        step = _STEP if even else 2
        new = max(_STEP, round(length * part / _STEP) * _STEP) if even else max(_LEAST, round(length * part) | 1)
        while new in made.values():
            new += step
        made[key] = min(new, length)
    return made


def _shortened(arguments: Arguments, lengths: dict[tuple[int, int], int], alike: bool) -> Arguments:
    batches = {shape[0] for shape in _shapes(arguments) if len(shape) > 1}
    batch = batches.pop() if len(batches) == 1 else 0

    def leaf(item: Any) -> Any:
        if not isinstance(item, ArraySpec | np.ndarray) or not item.shape:
            return item
        free = _free(tuple(item.shape))
        shape = [lengths.get(_key(a, n, alike), n) if a in free else n for a, n in enumerate(item.shape)]
        if item.shape[0] == batch > BATCHES[0]:
            shape[0] = BATCHES[0]
        if isinstance(item, ArraySpec):
            return replace(item, shape=tuple(shape))
        return item[tuple(slice(n) for n in shape)]

    return Arguments(map_values(arguments.args, leaf), map_values(arguments.kwargs, leaf))


def _shapes(arguments: Arguments) -> list[tuple[int, ...]]:
    return [shape for shape, _ in _arrays(arguments)]


def _arrays(arguments: Arguments) -> list[tuple[tuple[int, ...], str]]:
    """The shapes of all arrays, with how they are written."""
    arrays: list[tuple[tuple[int, ...], str]] = []

    def leaf(item: Any) -> None:
        if isinstance(item, ArraySpec):
            arrays.append((item.shape, str(replace(item, low=None, high=None))))
        elif isinstance(item, np.ndarray):
            dtype = next((s for s, long in DTYPES.items() if long == item.dtype.name), item.dtype.name)
            arrays.append((item.shape, str(ArraySpec(dtype, item.shape))))

    map_values((arguments.args, arguments.kwargs), leaf)
    return arrays


def _change(before: Arguments, after: Arguments) -> str:
    """``f32[2, 3, 16, 112, 112] became f32[2, 3, 5, 15, 17]``."""
    pairs = zip(_arrays(before), _arrays(after), strict=True)
    return ", ".join(f"{a} became {b}" for (_, a), (_, b) in pairs if a != b)
