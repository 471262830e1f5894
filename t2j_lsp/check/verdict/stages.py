"""Compares the observations of the two workers, stage by stage and precision by precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeGuard

import numpy as np

from t2j_lsp.check.inputs import BESIDE
from t2j_lsp.check.messages import Observed
from t2j_lsp.check.protocol import Array, NdArray, as_float64, dtype_name
from t2j_lsp.contract import Result, StageResult

from .compare import (  # fmt: skip
    EXACT,
    FLOOR,
    Allowed,
    Comparison,
    Difference,
    arrays_of,
    compare,
    exact,
    kind_of,
    scale_of,
)

ILL = 1e-3
"""Where torch's own float32 and float64 part by more than this part of the scale, nothing can be decided."""
FLOAT32 = 2e-5
"""Difference always allowed in float32, as a part of the tensor's scale."""
LONG_SUM = 1e-6
"""Times the root of the number of inputs' elements to each of a result: what a sum in another order may be off."""
FACTOR = 64
"""JAX in float32 may be this much farther from the truth (torch in float64) than torch in float32 is."""

HALF = {"float16": 11, "bfloat16": 8}
"""Bits of the significand. torch computes most operations on these in float32 and rounds once."""
UNITS = 8
"""Units in the last place that JAX's elements may be off where torch's are rounded only once."""

NOTHING = "nothing could be compared"

_WIDTHS = {
    "int64": ("int64", "int32"),
    "uint64": ("uint64", "uint32"),
    "float64": ("float64", "float32"),
    "complex128": ("complex128", "complex64"),
}
"""What JAX may give for torch's dtypes when 64-bit types are not enabled."""


def stage_of(name: str) -> str:
    """The stage that an observation belongs to."""
    return "behavioral" if re.match(r"(step|after) \d+", name) else "numeric"


def mode_of(name: str) -> str:
    """The mode that an observation was made in."""
    return "eval" if "eval" in name.split(":")[0] else "train"


def is_variant(name: str) -> bool:
    """Whether an observation was made with other inputs than the rest."""
    return name.startswith("eval output (")


def group_of(name: str) -> str:
    """Observations of one group share a scale."""
    return re.sub(r"(?<=gradient of input) \d+$", "", name.partition(": ")[0])


class Conditioning:
    """How far torch in float32 is from torch in float64, by leaf: what rounding alone does to it."""

    def __init__(self, wide: Observed, narrow: Observed, elements: int = 0) -> None:
        self.elements = elements
        """The number of elements of the largest input."""
        self.errors: dict[str, float] = {}
        self.ill: set[str] = set()
        """Observations that nothing can be decided about."""
        self.rounded: dict[str, int] = {}
        """Leaves in half precision that torch rounded only once, and the bits of their significands."""
        scales = group_scales(wide)
        for name in narrow.keys() & wide.keys():
            right = arrays_of(narrow[name], numbers=True)
            for path, left in arrays_of(wide[name], numbers=True).items():
                self._leaf(name, path, left, right.get(path), scales[group_of(name)])

    def _leaf(self, observation: str, path: str, left: Array, right: Array | None, group: float) -> None:
        name = observation + path
        if right is None or tuple(right.shape) != tuple(left.shape):
            self.ill.add(observation)
        elif kind_of(left) in ("bool", "integer"):
            if not np.array_equal(as_float64(left), as_float64(right)):
                self.ill.add(observation)
        else:
            a, b = as_float64(left), as_float64(right)
            if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                self.ill.add(observation)
                return
            finite = np.isfinite(a)
            apart = np.abs(a[finite] - b[finite])
            error = float(apart.max(initial=0.0))
            self.errors[name] = error
            bits = HALF.get(dtype_name(right))
            if bits and bool((apart <= last_place(a[finite], bits)).all()):
                self.rounded[name] = bits
            scale = scale_of(a, group)
            if error > max(ILL * scale, FLOOR / EXACT):
                self.ill.add(observation)

    def is_ill(self, name: str) -> bool:
        """Whether an observation, or a part of one, is such."""
        return any(name == i or name.startswith((f"{i}[", f"{i}.")) for i in self.ill)

    def meaning(self, name: str, values: NdArray, group: float) -> float:
        """The bound in float64: `exact`, or more where rounding is amplified."""
        amplified = 100 * self.errors.get(name, 0.0) * 2.0**-29
        return max(exact(name, values, group), amplified)

    def precision(self, name: str, values: NdArray, group: float) -> float | NdArray:
        """The bound in the user's precision."""
        summed: float = LONG_SUM * (self.elements / max(values.size, 1)) ** 0.5
        bound = max(FACTOR * self.errors.get(name, 0.0), max(FLOAT32, summed) * scale_of(values, group), 1e-7)
        if name not in self.rounded:
            return bound
        each: NdArray = np.minimum(bound, UNITS * last_place(values, self.rounded[name]))
        return each


PERTURBATION = 1e-12
"""How far torch's state is moved, relative to each value, to see what optimizer steps make of rounding."""
CARRIED = 10
_MOST_CARRIED = 1e-6


def trajectory(
    meaning: Callable[[str, NdArray, float], float],
    observed: Observed,
    moved: Sequence[Observed],
    most: float = _MOST_CARRIED,
) -> Callable[[str, NdArray, float], float]:
    """The bound after optimizer steps, in float64: that of ``meaning``, or what steps make of rounding.

    Gradients that agree to 1e-13 part on the way where Adam divides a small one by its own size. ``moved`` is what
    torch observes from states that are `PERTURBATION` away: what these make of a parameter, rounding may make of it.
    """
    carried: dict[str, float] = {}
    for run in moved:
        for name in observed.keys() & run.keys():
            others = arrays_of(run[name])
            for path, array in arrays_of(observed[name]).items():
                if path in others and others[path].shape == array.shape:
                    apart = float(np.abs(as_float64(array) - as_float64(others[path])).max(initial=0.0))
                    carried[name + path] = max(carried.get(name + path, 0.0), apart)

    def allowed(name: str, values: NdArray, group: float) -> float:
        bound = most * scale_of(values, group)
        return max(meaning(name, values, group), min(CARRIED * carried.get(name, 0.0), bound))

    return allowed


_AS_FAR = 2
"""How much farther JAX may be than torch's own rounding moved a value."""


def is_rounding(name: str, torch: Observed, jax: Iterable[Observed], rounded: Iterable[Observed]) -> bool:
    """Whether torch, rounding otherwise, parts from itself as far as JAX does from it."""
    observation = next((n for n in torch if name == n or name.startswith((f"{n}[", f"{n}."))), None)
    if observation is None or (held := arrays_of(torch[observation]).get(name.removeprefix(observation))) is None:
        return False

    def apart(others: Iterable[Observed]) -> float:
        """The largest distance of any element; for integers, the number of elements that differ."""
        largest = 0.0
        for other in others:
            array = arrays_of(other.get(observation)).get(name.removeprefix(observation))
            if array is None or tuple(array.shape) != tuple(held.shape):
                continue
            with np.errstate(invalid="ignore"):  # infinity is no distance from itself
                distances = np.abs(as_float64(held) - as_float64(array))
            whole = kind_of(held) in ("bool", "integer")
            largest = max(largest, float((distances > 0).sum() if whole else np.nanmax(distances, initial=0.0)))
        return largest

    moved = apart(rounded)
    return moved > 0 and apart(jax) <= _AS_FAR * moved


def is_float(array: Array) -> TypeGuard[NdArray]:
    """Whether an array holds floats of 32 or 64 bits."""
    return array.dtype in (np.float32, np.float64)


def perturbed(state: Mapping[str, Array], seed: int = 0) -> dict[str, Array]:
    """A state whose floats are moved by up to `PERTURBATION` of themselves."""
    rng = np.random.default_rng(seed)
    return {name: array * (1 + PERTURBATION * rng.uniform(-1, 1, array.shape)) if is_float(array) else array
            for name, array in state.items()}  # fmt: skip


def last_place(values: NdArray, bits: int) -> NdArray:
    """A unit in the last place of every value, in a half precision with so many bits."""
    spacing: NdArray = np.maximum(np.abs(values) * 2.0 ** (1 - bits), 2.0**-24 if bits == 11 else 2.0**-133)
    return spacing


def group_scales(observed: Observed) -> dict[str, float]:
    """The largest magnitude in each group of observations."""
    scales: dict[str, float] = {}
    for name, tree in observed.items():
        largest = max((scale_of(as_float64(a)) for a in arrays_of(tree).values()), default=0.0)
        scales[group_of(name)] = max(scales.get(group_of(name), 0.0), largest)
    return scales


def compare_all(torch: Observed, jax: Observed, skip: Iterable[str] = (), allowed: Allowed = exact) -> Comparison:
    """Compares every observation that both sides have, but those in ``skip``."""
    result = Comparison()
    scales = group_scales(torch)
    ignored = set(skip)
    for name, tree in torch.items():
        if name in ignored or name not in jax:
            continue
        result.observed.append(name)
        compare(name, tree, jax[name], result, scales[group_of(name)], allowed)
    # A converted program may rest on lengths that the user stated: with others it may give another shape.
    result.differences = [d for d in result.differences if not (d.name.startswith(BESIDE) and "shape" in str(d))]
    return result


def compare_dtypes(torch: Observed, jax: Observed, x64: bool = False) -> list[Difference]:
    """Dtypes of outputs in the user's precision.

    Without 64-bit types JAX's are narrower, which is no difference; with them, only integers may be.
    """
    differences = []
    for name in torch:
        if not name.endswith("output") or name not in jax:
            continue
        right = arrays_of(jax[name])
        for path, left in arrays_of(torch[name]).items():
            have, want = dtype_name(right[path]) if path in right else None, dtype_name(left)
            allowed = (want,) if x64 and kind_of(left) != "integer" else _WIDTHS.get(want, (want,))
            if have is not None and have not in allowed:
                differences.append(Difference(f"{name}{path}", f"is {want} in torch and {have} in JAX", "dtype"))
    return differences


def summarise(names: Iterable[str]) -> list[str]:
    """Observations in the words of a report: one line for all gradients of parameters, with their number."""
    counts: dict[str, int] = {}
    for name in names:
        counts[group_of(name)] = counts.get(group_of(name), 0) + 1
    return [group if count == 1 else f"{group} ({count})" for group, count in counts.items()]


def merge(results: Iterable[Comparison]) -> Comparison:
    """Several comparisons as one."""
    total = Comparison()
    for result in results:
        total.observed += [o for o in result.observed if o not in total.observed]
        total.differences += result.differences
        if result.max_abs_err is not None and result.max_rel_err is not None:
            total.record(result.max_abs_err, result.max_rel_err)
    return total


def stage_result(comparison: Comparison) -> StageResult:
    """A stage's result from its comparison."""
    if not comparison.observed:
        return StageResult(reason=NOTHING)
    result = Result.FAIL if comparison.differences else Result.PASS
    reason = describe(comparison.differences) if comparison.differences else None
    return StageResult(result, reason, comparison.max_abs_err, comparison.max_rel_err, summarise(comparison.observed))


def together(first: StageResult, second: StageResult) -> StageResult:
    """A stage's result with what was observed later."""
    if second.result is Result.FAIL or first.result is Result.NOT_RUN:
        first.result, first.reason = second.result, second.reason
    first.observed += second.observed
    pairs = ((first.max_abs_err, second.max_abs_err), (first.max_rel_err, second.max_rel_err))
    first.max_abs_err, first.max_rel_err = (
        max((e for e in pair if e is not None), default=None) for pair in pairs
    )  # fmt: skip
    return first


def describe(differences: list[Difference]) -> str:
    """The first difference, and how many more observations differ."""
    others = len({d.name for d in differences} - {differences[0].name})
    more = (
        f" ({others} more observations differ)" if others > 1 else " (one more observation differs)" if others else ""
    )
    return f"{differences[0]}{more}"
