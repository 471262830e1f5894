"""The text of generated tests: inputs and expected values as short expressions, and comparisons of these."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2j_lsp.check.inputs import Arguments, Code
from t2j_lsp.check.protocol import NdArray, Opaque, RawArray, Record, leaves

LITERAL, LITERAL_INTEGERS = 8, 48
"""Arrays with more elements are not written out: of values a few, with one sum that weighs all of them."""
FIRST = 4
FLOOR = 1e-6
"""The least tolerance: of the largest value, and absolute."""
ROUNDING = 20.0
"""So much of what float32 is away from float64 on the PyTorch program is no difference."""

HEAD = '''\
"""Unit tests of {module}, written by t2j: known parameters and inputs give what they gave when this was written."""

import math

import pytest
import torch
from torch.testing import assert_close

{imports}


def numbers(*shape: int, phase: int = 0) -> torch.Tensor:
    """Numbers between -1 and 1, as different as random ones and the same everywhere."""
    n = torch.arange(math.prod(shape))
    return ((n + 977) % 2017 * ((n * 31 + phase * 37 + 503) % 1999) % 2003 / 1001.5 - 1.0).reshape(shape)
'''
STATE = '''

def known(name: str, value: torch.Tensor) -> torch.Tensor:
    """Values for an entry of a state dict: scales and variances around 1, weights as small as they have many inputs."""
    around = 1.0 if name.endswith("running_var") or value.dim() == 1 and name.endswith("weight") else 0.0
    spread = (value.numel() / value.shape[0]) ** -0.5 if value.dim() > 1 else 0.3
    return around + spread * numbers(*value.shape, phase=sum(map(ord, name)))


def set_state(model: torch.nn.Module, kept: tuple[str, ...] = ()) -> None:
    """Gives a model known parameters and buffers; those that are kept are what its constructor computed."""
    state = model.state_dict()
    model.load_state_dict({name: value if name in kept else known(name, value) for name, value in state.items()})
'''


class UnwritableError(Exception):
    """A value that has no short expression. Its text is the reason."""


@dataclass
class CallArguments:
    """The arguments of a call as expressions. ``names`` are those that they need of the program."""

    args: list[str] = field(default_factory=list)
    kwargs: dict[str, str] = field(default_factory=dict)
    floats: list[int | str] = field(default_factory=list)
    """Which of them are arrays of floats, by position or keyword."""
    names: set[str] = field(default_factory=set)
    _phase: int = 0

    @staticmethod
    def of(arguments: Arguments) -> CallArguments:
        """Raises UnwritableError."""
        if arguments.call is not None:
            raise UnwritableError("its arguments come from a call")
        result = CallArguments()
        for index, value in enumerate(arguments.args):
            result.args.append(result.expression(value))
            result.floats += [index] if _is_float(value) else []
        for key, value in arguments.kwargs.items():
            result.kwargs[key] = result.expression(value)
            result.floats += [key] if _is_float(value) else []
        return result

    def call(self, function: str, instead: dict[int | str, str] | None = None) -> str:
        """The call of a function, with other expressions for some arguments."""
        other = instead or {}
        parts = [other.get(index, text) for index, text in enumerate(self.args)]
        parts += [f"{key}={other.get(key, text)}" for key, text in self.kwargs.items()]
        return f"{function}({', '.join(parts)})"

    def __getitem__(self, place: int | str) -> str:
        return self.args[place] if isinstance(place, int) else self.kwargs[place]

    def expression(self, value: Any) -> str:
        """An expression of a PyTorch test for a value."""
        match value:
            case Code():
                self.names |= set(re.findall(r"(?<![\w.\"'])[A-Za-z_]\w*", value.text))
                return value.text
            case np.ndarray():
                return self._array(value)
            case list():
                return f"[{', '.join(map(self.expression, value))}]"
            case tuple():
                return f"({', '.join(map(self.expression, value))}{',' if len(value) == 1 else ''})"
            case dict():
                return "{" + ", ".join(f"{k!r}: {self.expression(v)}" for k, v in value.items()) + "}"
            case float() if not math.isfinite(value):
                return f'float("{value}")'
            case None | bool() | int() | float() | str():
                return repr(value)
        raise UnwritableError(f"an argument is a {type(value).__name__}")

    def _array(self, array: NdArray) -> str:
        shape, dtype = ", ".join(map(str, array.shape)), array.dtype.name
        if array.dtype.kind in "iub":
            return _integers(array)
        if dtype not in ("float32", "float64", "float16"):
            raise UnwritableError(f"an argument is {dtype}")
        self._phase += 1
        text = f"numbers({', '.join(filter(None, [shape, f'phase={self._phase}']))})"
        if array.size and array.min() >= 0:
            text = f"{text}.abs()" if array.max() > 1 or array.min() == 0 else f"(0.5 + 0.4 * {text})"
        return text if dtype == "float32" else f"{text}.to(torch.{dtype})"


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float32 and value.size > 0


def _integers(array: NdArray) -> str:
    dtype = array.dtype.name
    option = "" if dtype in ("int64", "bool") and array.size else f", dtype=torch.{dtype}"
    if array.size <= LITERAL_INTEGERS:
        return f"torch.tensor({array.tolist()}{option})"
    shape = ", ".join(map(str, array.shape))
    if dtype == "bool":
        return f"(numbers({shape}) < 0.2)"
    low, span = int(array.min()), int(array.max()) - int(array.min()) + 1
    text = f"torch.arange({array.size}{option}) * 7 % {span}"
    return f"({text}{f' + {low}' if low else ''}).reshape({shape})"


def digest(array: NdArray) -> float:
    """The sum of all values, each with a weight of its own, as `weighted` writes it."""
    return float((array.astype(np.float64) * numbers(array.shape, 9)).sum())


def weighted(expression: str, shape: tuple[int, ...], phase: int = 9) -> str:
    return f"({expression} * numbers({', '.join([*map(str, shape), f'phase={phase}'])})).sum()"


def numbers(shape: tuple[int, ...], phase: int) -> NdArray:
    """What the function of the tests gives, in float64."""
    n = np.arange(math.prod(shape))
    values: NdArray = (n + 977) % 2017 * ((n * 31 + phase * 37 + 503) % 1999) % 2003 / 1001.5 - 1.0
    return values.reshape(shape)


def comparisons(expression: str, narrow: Any, wide: Any, described: bool = True) -> Iterator[str]:
    """The statements that compare what an expression gives with its value in float32; ``wide`` is that in float64."""
    for (path, value), (_, exact) in zip(leaves(narrow, expression), leaves(wide, expression), strict=True):
        if isinstance(value, Opaque | RawArray | Record):
            continue
        if not isinstance(value, np.ndarray):
            yield f"assert {path} is {value!r}" if value is None or isinstance(value, bool) else _equal(path, value)
            continue
        if described:
            yield f"assert {path}.shape == {value.shape}"
            yield f"assert {path}.dtype == torch.{value.dtype.name}"
        yield from _compared(path, value, np.asarray(exact))


def _equal(path: str, value: Any) -> str:
    return (
        f"assert {path} == pytest.approx({value!r}, rel=1e-5)"
        if isinstance(value, float)
        else f"assert {path} == {value!r}"
    )


def _compared(path: str, value: NdArray, exact: NdArray) -> Iterator[str]:
    kind = value.dtype.kind
    if kind in "iub":
        if value.size <= LITERAL_INTEGERS:
            yield f"assert torch.equal({path}, {_integers(value)})"
        else:
            yield f"assert {path}.sum() == {int(value.sum())}"
        return
    if kind != "f" or not np.isfinite(value).all() or not value.size:
        return
    flat, truth = value.astype(np.float64).reshape(-1), np.asarray(exact, np.float64).reshape(-1)
    option = "" if value.dtype == np.float32 else f", dtype=torch.{value.dtype.name}"
    if value.size <= LITERAL:
        expected = f"torch.tensor({_rounded(value.tolist())}{option})"
        yield f"assert_close({path}, {expected}, rtol=1e-5, atol={_tolerance(flat, truth)})"
        return
    start = f"torch.tensor({_rounded(flat[:FIRST].tolist())}{option})"
    yield f"assert_close({path}.flatten()[:{FIRST}], {start}, rtol=1e-5, atol={_tolerance(flat, truth)})"
    if value.dtype == np.float32:
        terms = np.abs(flat * numbers(value.shape, 9).reshape(-1))
        sums = np.array([digest(value)]), np.array([digest(np.asarray(exact))])
        atol = _tolerance(*sums, scale=float(terms.sum()))
        total = f"torch.tensor({_rounded(float(sums[0][0]))})"
        yield f"assert_close({weighted(path, value.shape)}, {total}, rtol=1e-5, atol={atol})"


def _tolerance(value: NdArray, exact: NdArray, scale: float | None = None) -> str:
    """A tolerance from how far PyTorch's float32 is from its float64, rounded up to one digit."""
    largest = float(np.abs(value).max(initial=0.0)) if scale is None else scale
    error = float(np.abs(value - exact).max(initial=0.0))
    least = max(FLOOR, FLOOR * largest, ROUNDING * error)
    power = math.floor(math.log10(least))
    return f"{math.ceil(least / 10**power - 1e-9)}e{power}"


def same(left: Any, right: Any) -> bool:
    """Whether two runs gave the same values: what random draws decide, no test can expect."""
    pairs = list(zip(leaves(left), leaves(right), strict=False))
    return len(leaves(left)) == len(leaves(right)) and all(
        np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        else isinstance(a, np.ndarray) == isinstance(b, np.ndarray)
        for (_, a), (_, b) in pairs
    )


def strings(values: list[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.7g}")


def wrapped(line: str, indent: str = "    ") -> Iterator[str]:
    """A statement of a test, a long comparison on several lines."""
    match = re.fullmatch(r"(assert_close)\((.*)\)", line)
    if len(indent + line) <= 118 or match is None:
        yield indent + line
        return
    parts = _arguments(match[2])
    yield f"{indent}{match[1]}("
    yield from (f"{indent}    {part}," for part in parts)
    yield f"{indent})"


def _arguments(text: str) -> list[str]:
    """The arguments of a call, split at its own commas."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and not depth:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]
