"""Lengths of axes that tell mistakes apart, for inputs that are guessed and for those that a program shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from t2j_lsp.check.inputs import Arguments, ArraySpec, map_values

Spec = ArraySpec
BATCHES = (3, 4, 5, 7, 9, 11, 13)
"""Lengths of the first axis. With 2, a roll by one is a flip, and a swap of two is a reversal.

As few as that: XLA without its algebraic simplifier gets a softmax over a first axis of 5 wrong on the CPU."""
RESOLUTION = "input_resolution"
"""What height and width of an image are called by modules that take its rows behind each other."""
_BIG = 20_000


def batched(*rest: int) -> tuple[int, ...]:
    """A shape with a first axis of 3 or more that is unlike the others where those are small.

    >>> batched(3, 17, 19)
    (4, 3, 17, 19)
    """
    small = math.prod(rest) <= _BIG
    return (next((n for n in BATCHES if n not in rest), BATCHES[0]) if small else BATCHES[0], *rest)


def shrunk(arguments: Arguments) -> list[Arguments]:
    """Variants of given inputs that are smaller, with axis lengths that differ from each other."""

    def small(spec: Any, size: tuple[int, int] | None, batch: int) -> Any:
        if not isinstance(spec, Spec) or len(spec.shape) < 2:
            return spec
        shape = (min(spec.shape[0], batch), *spec.shape[1:])
        if size is not None and len(shape) == 4 and min(shape[2:]) >= 16:
            shape = (*shape[:2], *size)
        return Spec(spec.dtype, shape, spec.low, spec.high)

    if not any(isinstance(a, Spec) for a in (*arguments.args, *arguments.kwargs.values())):
        return [arguments]
    variants = []
    for size in ((17, 19), (24, 32), (33, 47), (64, 96), None):
        kwargs = {k: small(v, size, BATCHES[0]) for k, v in arguments.kwargs.items()}
        variants.append(Arguments([small(a, size, BATCHES[0]) for a in arguments.args], kwargs))
    return [*variants, arguments]


def unpaired(arguments: Arguments) -> list[Arguments]:
    """For inputs with a batch of 1 or 2, or another axis of 2: variants with longer ones, best first.

    With a length of 2, a roll by one is a flip; with 1, nothing that happens to the axis shows.
    """
    specs: list[Spec] = []
    map_values((arguments.args, arguments.kwargs), lambda v: specs.append(v) if isinstance(v, Spec) else None)
    if not specs:
        return []
    batch = specs[0].shape[0] if len(specs[0].shape) > 1 else 0
    used = {n for spec in specs for n in spec.shape}
    free = [n for n in BATCHES if n not in used]
    if len(free) < 2:
        return []

    def longer(everywhere: bool) -> Arguments:
        def leaf(item: Any) -> Any:
            if not isinstance(item, Spec):
                return item
            shape = [free[1] if n == 2 else n for n in item.shape] if everywhere else list(item.shape)
            if batch in (1, 2) and item.shape[:1] == (batch,):
                shape[0] = free[0]
            return Spec(item.dtype, tuple(shape), item.low, item.high)

        return Arguments(map_values(arguments.args, leaf), map_values(arguments.kwargs, leaf))

    return [v for v in (longer(True), longer(False)) if str(v) != str(arguments)]


def grid(model: Any, built_with: Mapping[str, Any]) -> int | None:
    """How many places an image has whose height and width a module was built with, or knows under this name."""
    match built_with.get(RESOLUTION, getattr(model, RESOLUTION, None)):
        case (int(height), int(width)) | [int(height), int(width)]:
            return height * width
    return None
