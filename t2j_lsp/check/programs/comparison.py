"""Compares what two runs of a program put out, each number by what PyTorch itself moves when its start is moved.

Rounding grows as a program goes on, in some programs without bound. How much is measured: PyTorch runs once more with
its first values moved by a rounding, and a number may differ by a multiple of what it moved then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from t2j_lsp.check.messages import ProgramRun
from t2j_lsp.check.protocol import NdArray
from t2j_lsp.contract import ProgramValues

from .text import PrintedNumber, parts

CAP = 0.02
"""The largest relative tolerance. What needs a larger one is not settled by PyTorch: it is left out, and said."""
_VANISHES, _NOTHING = 1e-6, 1e-12
"""What of a number of float32 is left in float64 where it is zero but for rounding, also if float32 has it as zero."""
_EVERYWHERE = 0.1
"""The share of the moves of all numbers before that counts for a number besides its own moves."""
_COUNTERS = ("num_batches_tracked",)


@dataclass(frozen=True)
class Bounds:
    """Relative tolerances: the least, the multiple of a move that is allowed, and the size of the first move."""

    floor: float
    factor: float
    moved: float


BOUNDS = {"float32": Bounds(1e-4, 30.0, 1e-7), "float64": Bounds(1e-7, 1000.0, 1e-12)}


@dataclass
class ProgramDifference:
    """The first difference: what differs, and the lines that put it out."""

    what: str
    torch: tuple[str, int]
    jax: tuple[str, int]


@dataclass
class ProgramComparison:
    """What was compared, by kind, and the first difference of each."""

    values: dict[str, ProgramValues] = field(default_factory=dict)
    differences: list[ProgramDifference] = field(default_factory=list)

    @property
    def is_chaotic(self) -> bool:
        """Whether PyTorch settles less than half of what would have to agree."""
        numbers = sum(one.numbers for one in self.values.values())
        return 2 * sum(one.chaotic for one in self.values.values()) > numbers


class Comparer:
    """Compares one run of either side; ``moved`` are PyTorch's runs from moved values, none where not yet needed.

    ``rough`` is PyTorch's run in float32, if these are in float64: it shows which numbers are zero but for rounding.
    """

    def __init__(
        self,
        torch: ProgramRun,
        jax: ProgramRun,
        moved: list[ProgramRun],
        bounds: Bounds,
        rough: ProgramRun | None = None,
    ) -> None:
        self.torch, self.jax, self.moved, self.bounds, self.rough = torch, jax, moved, bounds, rough

    def compare(self) -> ProgramComparison:
        """Everything that came out."""
        comparison = ProgramComparison()
        for kind, compare in (
            ("printed", self._printed),
            ("collected", self._collected),
            ("saved", self._saved),
            ("parameters", self._parameters),
        ):
            values = ProgramValues()
            difference = next(compare(values), None)
            comparison.values[kind] = values
            if difference is not None:
                comparison.differences.append(difference)
        return comparison

    # Printed texts ---------------------------------------------------------------------------------------------------

    def _printed(self, values: ProgramValues) -> Iterator[ProgramDifference]:
        moves = _Moves()
        pairs = list(zip(self.torch.printed, self.jax.printed, strict=False))
        for index, (wanted, got) in enumerate(pairs):
            places = (wanted.file, wanted.line), (got.file, got.line)
            (words, numbers), (own_words, own_numbers) = parts(wanted.text), parts(got.text)
            values.count += 1
            if words != own_words:
                yield ProgramDifference(f"PyTorch prints {_quoted(wanted.text)}, JAX {_quoted(got.text)}", *places)
                return
            others = [self._numbers_of(run, index, words) for run in self.moved]
            rough = self._numbers_of(self.rough, index, words) if self.rough is not None else None
            for slot, (number, own) in enumerate(zip(numbers, own_numbers, strict=True)):
                if rough is not None and _are_nothing(rough[slot].value, number.value, own.value):
                    values.numbers += 1
                    continue
                key = (wanted.line, words, slot)
                tolerance = self._tolerance(moves, key, number, [None if o is None else o[slot] for o in others])
                problem = _number_problem(number, own, tolerance, values)
                if problem is not None:
                    yield ProgramDifference(f"{problem} in {_quoted(wanted.text)}", *places)
        lengths = len(self.torch.printed), len(self.jax.printed)
        if lengths[0] != lengths[1] and not (self.torch.stopped and self.jax.stopped):
            more, texts = ("PyTorch", self.torch) if lengths[0] > lengths[1] else ("JAX", self.jax)
            if self.torch.failure is None and self.jax.failure is None:
                one = texts.printed[len(pairs)]
                places = ((one.file, one.line), ("", 0)) if more == "PyTorch" else (("", 0), (one.file, one.line))
                yield ProgramDifference(f"only {more} prints {_quoted(one.text)}", *places)

    @staticmethod
    def _numbers_of(run: ProgramRun, index: int, words: str) -> tuple[PrintedNumber, ...] | None:
        """The numbers that a moved run printed there; None where it printed something else."""
        if index >= len(run.printed):
            return None
        own_words, numbers = parts(run.printed[index].text)
        return numbers if own_words == words else None

    def _tolerance(
        self, moves: _Moves, key: Hashable, number: PrintedNumber, others: list[PrintedNumber | None]
    ) -> float:
        """The relative tolerance of a number, with what it moved noted."""
        moved = max((CAP if o is None else _relative(number.value, o.value) for o in others), default=0.0)
        floor = 0.0 if not number.digit and number.value == int_of(number.value) else self.bounds.floor
        return max(floor, self.bounds.factor * moves.note(key, moved))

    # Arrays ----------------------------------------------------------------------------------------------------------

    def _collected(self, values: ProgramValues) -> Iterator[ProgramDifference]:
        if self.torch.stopped or self.torch.failure is not None or self.jax.failure is not None:
            return
        for name, numbers in self.torch.collected.items():
            own = self.jax.collected.get(name)
            if own is None:
                continue
            if len(own) != len(numbers):
                yield ProgramDifference(
                    f"{name} has {len(numbers)} numbers in PyTorch, {len(own)} in JAX", ("", 0), ("", 0)
                )
                continue
            others = [run.collected.get(name) for run in self.moved]
            yield from self._array(name, np.asarray(numbers), np.asarray(own), others, values, each=True)

    def _saved(self, values: ProgramValues) -> Iterator[ProgramDifference]:
        files = {name.partition("[")[0] for name in self.jax.saved}
        for name, held in self.torch.saved.items():
            own = self.jax.saved.get(name)
            file = name.partition("[")[0]
            if file not in files and not self.torch.stopped and self.torch.failure is self.jax.failure is None:
                values.count += 1
                yield ProgramDifference(f"only PyTorch writes the file {file}", ("", 0), ("", 0))
            if own is None or isinstance(held, str) != isinstance(own, str):
                continue
            others = [run.saved.get(name) for run in self.moved]
            wanted: object = held
            got: object = own
            arrays: list[object] = list(others)
            if isinstance(held, str) and isinstance(own, str):
                (words, numbers), (own_words, own_numbers) = parts(held), parts(own)
                if words != own_words:
                    values.count += 1
                    yield ProgramDifference(f"the file {name} has other words", ("", 0), ("", 0))
                    continue
                wanted, got = (np.array([n.value for n in one]) for one in (numbers, own_numbers))
                arrays = [np.array([n.value for n in parts(o)[1]]) if isinstance(o, str) else None for o in others]
            yield from self._array(f"the file {name}", wanted, got, arrays, values)
        yield from self._logged(values)

    def _logged(self, values: ProgramValues) -> Iterator[ProgramDifference]:
        """What went to TensorBoard, by name; of programs that were stopped or failed, as far as both got."""
        ended = not self.torch.stopped and self.torch.failure is self.jax.failure is None
        for name in dict.fromkeys([*self.torch.logged, *self.jax.logged]):
            wanted, got = self.torch.logged.get(name), self.jax.logged.get(name)
            places = tuple((one.file, one.line) if one else ("", 0) for one in (wanted, got))
            if wanted is None or got is None or ended and len(wanted.steps) != len(got.steps):
                if ended:
                    values.count += 1
                    counts = [0 if one is None else len(one.steps) for one in (wanted, got)]
                    what = f"PyTorch logs {name!r} {counts[0]} times, JAX {counts[1]} times"
                    yield ProgramDifference(what, *places)
                continue
            both = min(len(wanted.steps), len(got.steps))
            if (wanted.steps[:both], wanted.sizes[:both]) != (got.steps[:both], got.sizes[:both]):
                values.count += 1
                yield ProgramDifference(f"{name!r} is logged with other steps or shapes", *places)
                continue
            length = min(sum(wanted.sizes[:both]), len(wanted.values), len(got.values))
            runs = [run.logged.get(name) for run in self.moved]
            held, own, *others = (np.array(one.values[:length]) if one else None for one in (wanted, got, *runs))
            for difference in self._array(
                f"{name!r} as logged", held, own, others, values, each=set(wanted.sizes) == {1}
            ):
                yield ProgramDifference(difference.what, *places)

    def _parameters(self, values: ProgramValues) -> Iterator[ProgramDifference]:
        if self.torch.failure is not None or self.jax.failure is not None:
            return
        for key, module in self.torch.final.items():
            own = self.jax.final.get(key)
            if own is None:
                continue
            for name, held in module.state.items():
                if name.endswith(_COUNTERS) or name not in own.state:
                    continue
                if self.torch.stopped and name not in module.parameters:
                    continue  # one side may have seen the batch of the step that was not made
                others = [run.final[key].state.get(name) if key in run.final else None for run in self.moved]
                place = "", module.line
                yield from self._array(f"{module.name}.{name} at the end", held, own.state[name], others, values, place)

    def _array(
        self,
        name: str,
        wanted: object,
        got: object,
        others: Sequence[object],
        values: ProgramValues,
        place: tuple[str, int] = ("", 0),
        each: bool = False,
    ) -> Iterator[ProgramDifference]:
        """Compares arrays relative to the largest element, or ``each`` element to its own size."""
        if not isinstance(wanted, np.ndarray) or not isinstance(got, np.ndarray):
            return
        values.count += 1
        if wanted.shape != got.shape:
            yield ProgramDifference(f"{name} has shape {wanted.shape} in PyTorch, {got.shape} in JAX", place, ("", 0))
            return
        if not wanted.size:
            return
        errors = _errors(wanted, got, each)
        moved = [
            _errors(wanted, o, each) for o in others if isinstance(o, np.ndarray | list) and np.shape(o) == wanted.shape
        ]
        allowed = np.full(errors.shape, self.bounds.floor)
        for one in moved:
            allowed = np.maximum(
                allowed,
                self.bounds.factor * np.maximum(np.maximum.accumulate(one) if each else one, _EVERYWHERE * one.max()),
            )
        values.numbers += errors.size
        settled = allowed <= CAP
        values.chaotic += int((~settled).sum())
        if settled.any():
            values.max_rel_err = max(values.max_rel_err, float(errors[settled].max()))
            values.tolerance = max(values.tolerance, float(allowed[settled].max()))
        wrong = settled & ~(errors <= allowed)
        if wrong.any():
            first = int(np.argmax(wrong)) if each else int(np.argmax(np.where(wrong, errors, -1)))
            one, other = wanted.ravel()[first], got.ravel()[first]
            where = f"[{first}]" if each else ""
            yield ProgramDifference(f"{name}{where}: {one:.7g} in PyTorch, {other:.7g} in JAX", place, ("", 0))


class _Moves:
    """How far numbers moved so far: each by itself, and all."""

    def __init__(self) -> None:
        self._own: dict[Hashable, float] = {}
        self._all = 0.0

    def note(self, key: Hashable, moved: float) -> float:
        """Notes a move; how far this number and a share of what all moved counts for it."""
        self._own[key] = max(self._own.get(key, 0.0), moved)
        self._all = max(self._all, moved)
        return max(self._own[key], _EVERYWHERE * self._all)


def int_of(value: float) -> float:
    """The value where it is whole; NaN, which equals nothing, for what is not finite."""
    return float(round(value)) if np.isfinite(value) else float("nan")


def _are_nothing(rough: float, *values: float) -> bool:
    """Whether numbers of float64 are what rounding leaves of zero: with finer numbers less of it is left."""
    left = _VANISHES * abs(rough) if rough else _NOTHING
    return all(abs(one) < left for one in values) and bool(rough or max(map(abs, values)) > np.finfo(np.float32).tiny)


def _relative(one: float, other: float) -> float:
    if one == other or (np.isnan(one) and np.isnan(other)):
        return 0.0
    if not (np.isfinite(one) and np.isfinite(other)):
        return float("inf")
    return abs(one - other) / max(abs(one), abs(other))


def _errors(wanted: object, got: object, each: bool) -> NdArray:
    """The relative differences of elements, flat."""
    a, b = np.asarray(wanted).astype(np.complex128).ravel(), np.asarray(got).astype(np.complex128).ravel()
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    size = np.maximum(np.abs(a), np.abs(b))
    scale = size if each else np.full(size.shape, np.max(size[np.isfinite(size)], initial=0.0))
    return np.where(np.isnan(difference), np.inf, difference / np.maximum(scale, np.finfo(np.float64).tiny))


def _number_problem(wanted: PrintedNumber, got: PrintedNumber, tolerance: float, values: ProgramValues) -> str | None:
    """What is wrong with a printed number. Numbers that nothing settles are counted and left out."""
    values.numbers += 1
    if tolerance > CAP:
        values.chaotic += 1
        return None
    error = _relative(wanted.value, got.value)
    off = abs(wanted.value - got.value) if np.isfinite(error) else error
    size = max(abs(wanted.value), abs(got.value))
    beyond = max(0.0, off - 1.01 * max(wanted.digit, got.digit)) / size if error else 0.0
    values.max_rel_err = max(values.max_rel_err, beyond)
    values.tolerance = max(values.tolerance, tolerance)
    return None if beyond <= tolerance else f"{wanted.value:.10g} in PyTorch, {got.value:.10g} in JAX"


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
