"""The values of two programs side by side, statement by statement, with what tells them apart.

Whole arrays cross from the workers, because only whole arrays can be compared in another order of axes: those that
were sent to find the place of a difference (``trace.MAX_BYTES`` bounds each side), or ``BYTES`` where all agrees. What
leaves here are numbers about them: at most ``STEPS`` steps of about two kilobytes each, however large the arrays are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2j_lsp.check.messages import Observed, Tree
from t2j_lsp.check.protocol import Array, NdArray, as_float64, dtype_name
from t2j_lsp.check.verdict.compare import Difference, arrays_of, is_array, pairs, scale_of
from t2j_lsp.contract import Divergence, Explanation, Histogram, Location, Step, Value, Worst

from .localise import Alignment, Places, TracedEvent, arrangements, same

BYTES = 100 * 1024**2
STEPS = 400
BEFORE = 300
"""Steps that are listed at most, and how many of them at most before the first that parts."""
OBSERVATIONS = 20
"""Differing gradients, buffers and parameters that are listed at most."""
BINS = 24
SHOWN = 6
"""Elements that are listed of an array."""


@dataclass(frozen=True)
class Run:
    """What is known besides the events: why the verdict is ``different``, and what the two sides observed as a whole.

    ``lines`` are those of the files of each side, by path; ``torch`` and ``jax`` are observations by name.
    """

    mode: str
    wide: bool
    lines: tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]
    divergence: Divergence | None = None
    differences: tuple[Difference, ...] = ()
    torch: Observed | None = None
    jax: Observed | None = None
    failed: bool = False
    raised: Location | None = None
    """Whether the JAX side raised an error, and where."""


def explanation(alignment: Alignment, run: Run) -> Explanation:
    """The steps of two runs, and the first that parts."""
    return _Steps(alignment, run).explanation()


class _Steps:
    def __init__(self, alignment: Alignment, run: Run) -> None:
        self.alignment = alignment
        self.run = run
        self.steps: list[Step] = []
        self.first: int | None = None
        self.functions = {e.site.key[0] for e in alignment.torch}, {alignment.key(e)[0] for e in alignment.jax}

    def explanation(self) -> Explanation:
        parting = self.alignment.parting()
        done_t = done_j = 0
        for t, j in self.alignment.pairs:
            self._alone(done_t, t, done_j, j)
            self._pair(self.alignment.torch[t], self.alignment.jax[j], (t, j) == parting)
            done_t, done_j = t + 1, j + 1
        if self.run.failed:
            self._not_reached(done_t)
        else:
            self._alone(done_t, len(self.alignment.torch), done_j, len(self.alignment.jax))
        if self.first is None:
            self._observed()
        precision = "float64" if self.run.wide else "float32"
        start = max(0, (self.first or 0) - BEFORE)
        kept = self.steps[start : start + STEPS]
        first = None if self.first is None else self.first - start
        left_out = len(self.steps) - len(kept)
        return Explanation(tuple(kept), first, precision, self.run.mode, left_out, self.alignment.full)

    # --- statements -----------------------------------------------------------------------------------------------

    def _pair(self, torch: TracedEvent, jax: TracedEvent, parts: bool) -> None:
        agree = self.alignment.agree(torch, jax)
        if (torch.module and torch.site.target == "in" and agree) or not (_leaves(torch.value) or _leaves(jax.value)):
            return
        places = (self.alignment.first_value() if parts else None) or self._lines(torch, jax)
        if parts:
            self.first = len(self.steps)
        torch_leaves, jax_leaves = _leaves(torch.value), _leaves(jax.value)
        if len(torch_leaves) != len(jax_leaves):
            first = [next(iter(leaves.values()), None) for leaves in (torch_leaves, jax_leaves)]
            left, right = (self._value(side, places[side], first[side]) for side in (0, 1))
            self.steps.append(Step(_target(torch), agree, left, right))
            return
        for (path, a), b in zip(torch_leaves.items(), jax_leaves.values(), strict=True):
            self.steps.append(self._step(_target(torch) + path, a, b, places))
        if parts and not agree:
            apart = [i for i in range(self.first or 0, len(self.steps)) if not self.steps[i].agree]
            self.first = apart[0] if apart else self.first

    def _lines(self, torch: TracedEvent, jax: TracedEvent) -> Places:
        lines = [Location(e.site.file, e.site.line) if e.site.line else None for e in (torch, jax)]
        return lines[0], lines[1]

    def _alone(self, first_t: int, last_t: int, first_j: int, last_j: int) -> None:
        """Statements that only one side has, in functions that both have: not what happens inside of helpers."""
        torch_functions, jax_functions = self.functions
        for event in self.alignment.torch[first_t:last_t]:
            if not event.module and event.site.key[0] in jax_functions:
                for path, leaf in _leaves(event.value).items():
                    self.steps.append(Step(_target(event) + path, True, self._event(0, event, leaf), None))
        for event in self.alignment.jax[first_j:last_j]:
            if not event.module and self.alignment.key(event)[0] in torch_functions:
                for path, leaf in _leaves(event.value).items():
                    self.steps.append(Step(_target(event) + path, True, None, self._event(1, event, leaf)))

    def _not_reached(self, t: int) -> None:
        """The statement at which the JAX side raised an error."""
        left = [e for e in self.alignment.torch[t:] if _leaves(e.value) and not (e.module and e.site.target == "in")]
        if not left or self.first is not None:
            return
        (leaf, *_) = _leaves(left[0].value).values()
        self.first = len(self.steps)
        jax = self._value(1, self.run.raised, None) if self.run.raised else None
        self.steps.append(Step(_target(left[0]), False, self._event(0, left[0], leaf), jax))

    # --- observations ---------------------------------------------------------------------------------------------

    def _observed(self) -> None:
        """Gradients, buffers and parameters that part although every statement agrees."""
        torch, jax = self.run.torch or {}, self.run.jax or {}
        for difference in self.run.differences[:OBSERVATIONS]:
            label = difference.name.removeprefix("in float32, ")
            name = max((n for n in torch if label.startswith(n) and n in jax), key=len, default=None)
            values = pairs(torch[name], jax[name]) if name is not None else ""
            if isinstance(values, str) or name is None:
                continue
            for path, a, b in values:
                if label != name + path and path != "['sampled']":
                    continue
                if self.first is None:
                    self.first = len(self.steps)
                divergence = self.run.divergence
                places = (divergence.torch, divergence.jax) if divergence else (None, None)
                if is_array(a) and is_array(b):
                    made = self._step(label.replace("['sampled']", ", elements of it"), a, b, places)
                    self.steps.append(replace(made, agree=False))

    # --- one step -------------------------------------------------------------------------------------------------

    def _step(self, target: str, torch: Array, jax: Array, places: Places) -> Step:
        alignment = self.alignment
        agree = same(torch, jax, alignment.tolerance, alignment.layouts)
        left, right = as_float64(torch), as_float64(jax)
        fitting = [(errors(left, r), r) for r in arrangements(left, right, alignment.layouts)]
        by_element, matched = min(fitting, key=lambda f: _largest(f[0]), default=(None, right))
        error = None if by_element is None else _largest(by_element)
        scale = scale_of(left)
        relative = None if error is None else error / scale if scale > 0 else 0.0 if error == 0 else None
        return Step(
            target,
            agree,
            self._value(0, places[0], torch),
            self._value(1, places[1], jax, matched),
            _finite(error),
            _finite(relative),
            histogram(left, right),
            None if by_element is None else worst(left, matched, by_element),
            bool(fitting) and tuple(jax.shape) != tuple(torch.shape),
        )

    def _event(self, side: int, event: TracedEvent, leaf: Array) -> Value:
        return self._value(side, Location(event.site.file, event.site.line), leaf)

    def _value(self, side: int, place: Location | None, leaf: Array | None, ordered: NdArray | None = None) -> Value:
        lines = self.run.lines[side].get(place.file, ()) if place is not None else ()
        text = lines[place.line - 1].strip() if place is not None and place.line <= len(lines) else ""
        if leaf is None:
            return Value(place, text, (), "")
        wide = as_float64(leaf) if ordered is None else ordered
        numbers = np.abs(wide) if wide.dtype.kind == "c" else wide
        finite = numbers[np.isfinite(numbers)]
        shown = tuple(_shown(v) for v in numbers.reshape(-1)[:SHOWN].tolist())
        form = tuple(int(n) for n in leaf.shape), dtype_name(leaf)
        if not finite.size:
            return Value(place, text, *form, values=shown)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high, mean, std = (_finite(float(f(finite))) for f in (np.min, np.max, np.mean, np.std))
        return Value(place, text, *form, low, high, mean, std, shown)


def errors(left: NdArray, right: NdArray) -> NdArray:
    """The differences of two arrays of one shape by element; infinite where only one side is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.asarray(np.abs(left - right))
    error[(left == right) | (np.isnan(left) & np.isnan(right))] = 0.0
    return np.where(np.isnan(error), np.inf, error)


def worst(left: NdArray, right: NdArray, error: NdArray) -> Worst | None:
    """The element at which two arrays are farthest apart; None where they are the same."""
    if not error.any():
        return None
    at = np.unravel_index(int(error.argmax()), error.shape)
    left_value, right_value = (np.abs(a[at]) if a.dtype.kind == "c" else a[at] for a in (left, right))
    return Worst(tuple(int(i) for i in at), _shown(float(left_value)), _shown(float(right_value)))


def histogram(torch: NdArray, jax: NdArray) -> Histogram | None:
    """Counts between edges common to both sides; None for single numbers, and where nothing is finite."""
    torch_sizes, jax_sizes = (np.abs(a) if a.dtype.kind == "c" else a for a in (torch, jax))
    finite = [a[np.isfinite(a)] for a in (torch_sizes, jax_sizes)]
    if max(torch.size, jax.size) < 2 or not any(a.size for a in finite):
        return None
    low, high = min(a.min() for a in finite if a.size), max(a.max() for a in finite if a.size)
    if not np.isfinite(float(high) - float(low)):
        return None
    if 0 < high - low < BINS * np.spacing(max(abs(low), abs(high))):
        return None  # no numbers lie between so many edges
    edges = np.histogram_bin_edges([low, high], BINS)
    counts = [tuple(int(n) for n in np.histogram(a, edges)[0]) for a in finite]
    left_out = [a.size - f.size for a, f in zip((torch_sizes, jax_sizes), finite, strict=True)]
    return Histogram(tuple(float(e) for e in edges), counts[0], counts[1], *left_out)


def _leaves(value: Tree) -> dict[str, Array]:
    """What can be compared of a value: its arrays by path, or else a number or numbers."""
    arrays = arrays_of(value)
    if arrays:
        return arrays
    items = value if isinstance(value, list | tuple) else [value]
    if items and all(isinstance(v, bool | int | float) for v in items):
        return {"": np.asarray(value)}
    return {}


def _target(event: TracedEvent) -> str:
    if event.module:
        return f"{event.module} ({'input' if event.site.target == 'in' else 'output'})"
    return event.site.target


def _largest(error: NdArray) -> float:
    return float(error.max()) if error.size else 0.0


def _finite(number: float | None) -> float | None:
    return number if number is not None and np.isfinite(number) else None


def _shown(number: Any) -> float | str:
    return float(number) if np.isfinite(number) else str(float(number))


def _text(number: float | str) -> str:
    return number if isinstance(number, str) else f"{number:.6g}"


HEADERS = ("", "line", "torch", "line", "jax", "value", "shape", "max abs error", "max rel error")
NUMERIC = (1, 3, 7, 8)
_WIDTH = 44


def table(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    """The steps as rows of a table with `HEADERS`; the first that parts is marked ``>``, others ``x``."""
    for index, step in enumerate(explanation.steps):
        mark = ">" if index == explanation.first else "" if step.agree else "x"
        sides = [part for side in (step.torch, step.jax) for part in _place(side)]
        errors = ["" if e is None else f"{e:.1e}" for e in (step.max_abs_err, step.max_rel_err)]
        yield (mark, *sides, step.target, _shapes(step), *errors)


def _place(side: Value | None) -> tuple[str, str]:
    if side is None:
        return "", ""
    text = side.text if len(side.text) <= _WIDTH else side.text[: _WIDTH - 3] + "..."
    return str(side.location.line) if side.location else "", text


def _shapes(step: Step) -> str:
    shapes = [list(side.shape) for side in (step.torch, step.jax) if side is not None and side.dtype]
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return str(shapes[0])
    return " / ".join(map(str, shapes))


def closing(explanation: Explanation) -> list[str]:
    """What to say below the table: the values at the first step that parts, and what is not listed."""
    lines: list[str] = []
    if explanation.first is not None:
        step = explanation.steps[explanation.first]
        for side, value in (("torch", step.torch), ("jax", step.jax)):
            if value is not None and value.values:
                shown = ", ".join(map(_text, value.values))
                lines.append(f"{step.target} in {side}: {shown}{', ...' if _size(value) > len(value.values) else ''}")
        if step.worst is not None:
            at = f"at [{', '.join(map(str, step.worst.index))}], " if step.worst.index else ""
            lines.append(f"farthest apart {at}{_text(step.worst.torch)} in torch and {_text(step.worst.jax)} in jax")
    else:
        lines.append("every step agrees")
    if explanation.left_out:
        lines.append(f"{explanation.left_out} more steps are not listed")
    if explanation.cut:
        lines.append("what came later was not compared: there is too much of it")
    lines.append(f"one run in {explanation.precision}, in {explanation.mode} mode")
    return lines


def _size(value: Value) -> int:
    return int(np.prod(value.shape, dtype=np.int64))
