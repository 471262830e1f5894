"""What torch's own errors say of guessed inputs: each gives other values for one of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from t2j_lsp.check.inputs import ArraySpec, Code

from .lengths import batched

Spec = ArraySpec
LENGTH = 5
SIDES = ((17, 19), (20, 28))
BY_AXES = {1: ((23,), (64,), (100,), (1024,)), 2: SIDES, 3: ((7, 9, 11), (8, 16, 16), (16, 32, 32))}
"""What convolutions of one, two and three axes are tried with."""
_MOST_ENLARGED = {3: 64, 4: 128, 5: 64}
"""The longest side of what is enlarged, by its number of axes."""
OUT_OF_ORDER = "the offsets of an embedding bag must not decrease"
NUMBER = 6


def _channels(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Channels that a convolution wants; where inputs are concatenated, one gives less, or both give a half."""
    given, channels, got = tuple(map(int, match[1].split(","))), int(match[2]), int(match[3])
    if given == (1, *spec.shape):  # Taken for one example without a batch.
        return [Spec("float32", batched(channels, *size)) for size in BY_AXES.get(len(spec.shape) - 1, ())]
    if len(spec.shape) < 3:
        return []
    have = spec.shape[1]
    if have != got and sorted(given) == sorted(spec.shape):  # it was given with its axes in another order
        axis = spec.shape.index(got)
        if have == channels:
            shape = list(spec.shape)
            shape[1], shape[axis] = shape[axis], shape[1]
            return [Spec(spec.dtype, tuple(shape), spec.low, spec.high)]
        return [Spec(spec.dtype, (*spec.shape[:axis], channels, *spec.shape[axis + 1 :]), spec.low, spec.high)]
    wanted = [channels, channels - (got - have), have * channels // got]
    return [
        Spec(spec.dtype, (spec.shape[0], n, *spec.shape[2:]), spec.low, spec.high)
        for n in dict.fromkeys(wanted if got != have else wanted[:1]) if n > 0
    ]  # fmt: skip


def _normalized(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """The axis that became the last one; where it was multiplied on the way (shifted copies), with so many fewer."""
    want, got = int(match[1]), int(match[2])
    specs = [
        Spec(spec.dtype, (*spec.shape[:i], want, *spec.shape[i + 1 :])) for i, n in enumerate(spec.shape) if n == got
    ]
    if spec.shape and 0 < spec.shape[-1] + want - got < spec.shape[-1]:  # something was added to its last axis
        specs.append(Spec(spec.dtype, (*spec.shape[:-1], spec.shape[-1] + want - got)))
    if len(spec.shape) == 4 and got % want == 0 and spec.shape[1] % (got // want) == 0:
        specs.append(Spec(spec.dtype, (spec.shape[0], spec.shape[1] * want // got, *spec.shape[2:])))
    return specs


def _divisible(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Images that patches and windows divide."""
    return [Spec(spec.dtype, (*spec.shape[:2], *s), spec.low, spec.high) for s in ((32, 48), (64, 64), (56, 28))] * (
        len(spec.shape) == 4
    )


def _last(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [Spec(spec.dtype, (*spec.shape[:-1], int(match[1])), spec.low, spec.high)] if spec.shape else []


def _added(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Features of a length that, concatenated with others, make what a matrix in front of them takes."""
    want, got = int(match[1]), int(match[2])
    last = spec.shape[-1] if spec.shape else 0
    if spec.dtype != "float32" or not last or got % last or want * last % got:
        return []
    return [Spec(spec.dtype, (*spec.shape[:-1], want * last // got), spec.low, spec.high)]


def _flattened(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Images (or sequences) of about the size that gives a linear layer behind a flattening what it wants."""
    got, want, axes = int(match[1]), int(match[2]), len(spec.shape) - 2
    if axes < 1 or spec.dtype != "float32":
        return []
    near = (math.prod(spec.shape[2:]) * want / got) ** (1 / axes)
    sides = sorted(range(1, int(near) + 16), key=lambda side: abs(side - near))[:8]
    return [Spec(spec.dtype, (*spec.shape[:2], *(side,) * axes), spec.low, spec.high) for side in sides]


def _rank(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return _of_rank(spec, int(match[1]))


def _matrix(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return _of_rank(spec, 2)


def _fewer_axes(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """As many axes fewer as a layer was given too many."""
    return _of_rank(spec, len(spec.shape) - len(match[2].split(",")) + int(match[1]))


def _one_axis_less(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Where a shape is unpacked together with other things, and has too many."""
    return _of_rank(spec, len(spec.shape) - 1)


def _of_rank(spec: Spec, rank: int) -> list[Spec]:
    shapes = {1: (7,), 2: (LENGTH, 6), 3: (3, LENGTH, 6), 4: (3, 6, 17, 19), 5: (3, 6, 5, 17, 19)}
    if rank not in shapes or len(spec.shape) == rank:
        return []
    last = spec.shape[-1:] or (6,)
    return [Spec(spec.dtype, s, spec.low, spec.high) for s in (shapes[rank], (*shapes[rank][:-1], *last))]


def _integers(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [] if spec.dtype == "int64" else [Spec("int64", spec.shape[:2], 0, 3)]


def _smaller(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [Spec("int64", spec.shape, 0, 2)] if spec.dtype == "int64" and spec.high != 2 else []


def _size(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """An axis whose length torch wants to be another."""
    have, want, axis = int(match[1]), int(match[2]), int(match[3])
    specs = []
    for old, new in ((have, want), (want, have)):
        spots = [i for i, n in enumerate(spec.shape) if n == old]
        for spot in sorted(spots, key=lambda i: abs(i - axis)):
            specs.append(Spec(spec.dtype, (*spec.shape[:spot], new, *spec.shape[spot + 1 :]), spec.low, spec.high))
    return specs


def _image(spec: Spec, match: re.Match[str]) -> list[Spec]:
    size = int(match[1])
    return [Spec(spec.dtype, (*spec.shape[:2], size, size), spec.low, spec.high)] if len(spec.shape) == 4 else []


def _offsets(spec: Spec, match: re.Match[str]) -> list[Any]:
    """Where bags start in a list of ids."""
    return [np.array([0, 2, 5])] if spec.dtype == "int64" and len(spec.shape) == 1 else []


def _larger(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Sequences, images and volumes of four times the size, for networks that halve them often."""
    most = _MOST_ENLARGED.get(len(spec.shape))
    if most is None or max(spec.shape[2:]) > most:
        return []
    return [Spec(spec.dtype, (*spec.shape[:2], *(4 * side for side in spec.shape[2:])), spec.low, spec.high)]


def _number(spec: Spec, match: re.Match[str]) -> list[int]:
    """No tensor, where a number is wanted: one of many things, else an axis."""
    return [NUMBER, 1]


def _callable(spec: Spec, match: re.Match[str]) -> list[Code]:
    """No tensor, where a function is wanted."""
    return [Code("torch.tanh")]


def _single(spec: Spec, match: re.Match[str]) -> list[Any]:
    """Where a tensor is made a number: one number, or one for each example."""
    return [Spec(spec.dtype, shape, spec.low, spec.high) for shape in ((), spec.shape[:1])] if spec.shape else [NUMBER]


def _boolean(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [] if spec.dtype == "bool" else [Spec("bool", spec.shape)]


def _square(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Matrices that are multiplied with others of their kind."""
    if spec.dtype != "float32" or len(spec.shape) < 2 or spec.shape[-1] == spec.shape[-2]:
        return []
    return [Spec(spec.dtype, (*spec.shape[:-1], spec.shape[-2]))]


def _factors(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """The first of two batches of matrices, as the second wants it: as many, with as many columns as it has rows."""
    batch, columns, number, rows = (int(group) for group in match.groups())
    if spec.dtype != "float32" or len(spec.shape) != 3 or spec.shape[::2] != (batch, columns):
        return []
    return [Spec(spec.dtype, (number, spec.shape[1], rows))]


def _complex(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [Spec("complex64", spec.shape)] if spec.dtype == "float32" else []


_RANKS = r"Expected .*?(\d)D \(batched\)|expected (?:a )?(\d)D|expected (\d)-?[dD]|must be (?:a )?(\d)-?D"
_RANKS += r"|subscripts in the equation \((\d)\)|(\d)[ -]dimensional"
_LONG = (
    r"scalar types: Long|index tensor of type LongTensor|must be.*(?:Long|Int|integer)"
    r"|tensors used as indices must be long"
)
_NO_NUMBER = (
    r"must be (?:Number|int|float|tuple of ints).* not Tensor|tuple of ints, but found element of type Tensor"
    r"|invalid combination of arguments - got \(.*Tensor|Boolean value of Tensor with more than one"
    r"|cannot be interpreted as an integer|only integer tensors of a single element"
    r"|'Tensor' object has no attribute 'is_integer'"
)
_MATCH = r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)"

Change = Callable[[Spec, re.Match[str]], list[Any]]
"""The values that an error suggests instead of one."""

REPAIRS: tuple[tuple[str, Change], ...] = (
    (f"^{OUT_OF_ORDER}$|offsets\\[\\S+\\] (?:has to be 0|can not be greater)", _offsets),
    (r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+)", _channels),
    (r"expected input with shape \[\*, (\d+)\], but got input of size\s*\[[\d, ]*?(\d+)\]", _normalized),
    (r"rearrange-reduction pattern|[Ss]hape can't divide|is invalid for input of size|divisible", _divisible),
    (r"expected input with shape \[\*, (?:\d+, )*(\d+)\]", _last),
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _flattened),
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x\d+ and (\d+)x\d+\)", _last),
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _added),
    (r"must be a matrix|2D tensors expected|tensor with <= 2 dimensions", _matrix),
    (r"input.size\(-1\) must be equal to input_size. Expected (\d+)", _last),
    (_RANKS, lambda spec, match: _rank(spec, _first(match))),
    (r"(\d)D \(batched\) input to \w+, but got input of size: \[([\d, ]+)\]", _fewer_axes),
    (r"values to unpack \(expected (\d)", _rank),
    (r"too many values to unpack", _one_axis_less),
    (_LONG, _integers),
    (r"index out of range|Class values must be smaller|is out of bounds", _smaller),
    (_MATCH, _size),
    (r"first two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]", _factors),
    (r"first two dimensions of batch2|must be batches of square matrices|must be square", _square),
    (r"[Oo]utput size is too small|[Kk]ernel size can't be greater|less than|too small|should be larger than", _larger),
    (r"last dim(?:ension)? .*?(?:of|be)(?: size| length)? (\d+)", _last),
    (r"'Tensor' object is not callable", _callable),
    (_NO_NUMBER, _number),
    (r"only one element tensors can be converted|a Tensor with \d+ elements cannot be converted", _single),
    (r"doesn't match model \((\d+)", _image),
    (r"[Ww]rong image (?:height|width).*[Ee]xpected (\d+)", _image),
    (r"expected.*(?:Bool|bool)|mask.*must be bool|[Ii]nput must be (?:a )?bool", _boolean),
    (r"for tensors with non-complex|only supported for complex tensors|must be (?:a )?complex", _complex),
)


def _first(match: re.Match[str]) -> re.Match[str]:
    number = next(g for g in match.groups() if g)
    parsed = re.match(r"(\d)", number)
    assert parsed is not None
    return parsed


def changed(value: Any, change: Change, match: re.Match[str]) -> list[Any]:
    """What an error makes of one input: of a tensor, of all in a list of such, or of each in a dict."""
    if isinstance(value, Spec):
        return change(value, match)
    if isinstance(value, list | tuple) and value and all(isinstance(one, Spec) for one in value):
        several = zip(*(change(one, match) for one in value), strict=False)
        return [type(value)(items) for items in several]
    if isinstance(value, dict):
        held = [(key, one) for key, one in value.items() if isinstance(one, Spec)]
        return [{**value, key: new} for key, one in held for new in change(one, match)]
    return []
