"""Finds the first statement where two programs part, from the values that their statements had in one run.

Statements are paired in order by the function they are in and by what they assign; helpers of the converted file, which
torch's side lacks, stay unpaired, and so a mistake inside one is found at the statement that calls it.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2j_lsp.contract import Location

from .compare import arrays_of, kind_of, scale_of
from .protocol import as_float64
from .trace import Site

WIDE, NARROW = 1e-8, 1e-4
"""Parts of the scale by which values may differ in float64 and float32."""
_MAX_AXES = 5

Places = tuple[Location | None, Location | None]


@dataclass(frozen=True)
class Event:
    """A statement that ran, its value, and the gradients with respect to the floats in it."""

    site: Site
    value: Any
    gradients: list[Any]


class Alignment:
    """The runs of two programs side by side."""

    def __init__(self, torch: dict[str, Any], jax: dict[str, Any], wide: bool = True) -> None:
        self.torch, self.jax = _events(torch), _events(jax)
        self.calls: dict[str, list[Any]] = torch["calls"]
        self.tolerance = WIDE if wide else NARROW
        ours, theirs = [e.site.key for e in self.torch], [e.site.key for e in self.jax]
        matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
        self.pairs = [(b.a + i, b.b + i) for b in matcher.get_matching_blocks() for i in range(b.size)]

    def places(self, torch: Event | None, jax: Event | None) -> Places:
        """The lines of two events."""
        return _location(torch), _location(jax)

    def first_value(self) -> Places | None:
        """Where a value first differs."""
        for t, j in self.pairs:
            if not _agree(self.torch[t].value, self.jax[j].value, self.tolerance):
                return self.places(self.torch[t], self.jax[j])
        return None

    def first_gradient(self) -> Places | None:
        """Where a gradient first differs on its way back: at the statement that uses the value it belongs to."""
        compared = [p for p in self.pairs if self.torch[p[0]].gradients and self.jax[p[1]].gradients]
        for t, j in reversed(compared):
            left, right = self.torch[t], self.jax[j]
            if not _agree(left.gradients, right.gradients, self.tolerance):
                return self.places(_user(self.torch, t), _user(self.jax, j))
        return None

    def of_module(self, name: str) -> Places | None:
        """The line that calls the submodule which owns a parameter or buffer, or one of the modules around it."""
        owner = name.rpartition(".")[0]
        while owner and owner not in self.calls:
            owner = owner.rpartition(".")[0]
        if not owner:
            return self.reading(name.rpartition(".")[2])
        file, line = self.calls[owner]
        return Location(file, line), self.jax_line(file, line)

    def reading(self, name: str) -> Places | None:
        """The first statement that reads an attribute or variable."""
        names = {name, f"self.{name}"}
        for t, j in self.pairs:
            if names & set(self.torch[t].site.reads):
                return self.places(self.torch[t], self.jax[j])
        return None

    def jax_line(self, file: str, line: int) -> Location | None:
        """The JAX statement beside a torch one."""
        found = next(
            (j for t, j in self.pairs if (self.torch[t].site.file, self.torch[t].site.line) == (file, line)), None
        )
        return None if found is None else _location(self.jax[found])

    def torch_line(self, place: Location) -> Location | None:
        """The torch statement beside a JAX one, or else the one after the last that was reached."""
        for t, j in self.pairs:
            if (self.jax[j].site.file, self.jax[j].site.line) == (place.file, place.line):
                return _location(self.torch[t])
        last = max((t for t, _ in self.pairs), default=-1)
        return _location(self.torch[last + 1]) if last + 1 < len(self.torch) else None


def _events(run: dict[str, Any]) -> list[Event]:
    sites = [Site.from_plain(s) for s in run["sites"]]
    return [Event(sites[site], value, gradients) for site, value, gradients in run["events"]]


def _location(event: Event | None) -> Location | None:
    return None if event is None else Location(event.site.file, event.site.line)


def _user(events: list[Event], index: int) -> Event:
    """The statement that uses what an event assigned, or the event itself.

    Where that is a call, what ran inside it comes before it: then it is the first statement there.
    """
    here = events[index].site
    names = {part.strip("()* ") for part in here.target.split(",")}
    for at in range(index + 1, len(events)):
        later = events[at].site
        if here.target == "return":
            if later.function != here.function:
                return events[at]
        elif later.function == here.function and names & set(later.reads):
            inside = [e for e in events[index + 1 : at] if e.site.function != here.function]
            return inside[0] if inside else events[at]
    return events[index]


def _agree(left: Any, right: Any, tolerance: float) -> bool:
    """Whether two values agree, as far as they can be compared: in any order of axes."""
    ours, theirs = list(arrays_of(left).values()), list(arrays_of(right).values())
    if not ours or not theirs:
        return True
    if len(ours) != len(theirs):
        return False
    return all(_same(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if kind_of(a) != kind_of(b):
        return {kind_of(a), kind_of(b)} == {"integer", "bool"}
    left, right = as_float64(a), as_float64(b)
    if sorted(left.shape) != sorted(right.shape):
        return [n for n in left.shape if n != 1] == [n for n in right.shape if n != 1] and _close(
            left.reshape(-1), right.reshape(-1), tolerance
        )
    if left.shape == right.shape and _close(left, right, tolerance):
        return True
    orders = itertools.permutations(range(right.ndim)) if 2 <= right.ndim <= _MAX_AXES else iter(())
    return any(
        tuple(right.shape[i] for i in order) == left.shape and _close(left, right.transpose(order), tolerance)
        for order in orders
    )


def _close(left: Any, right: Any, tolerance: float) -> bool:
    if not np.array_equal(np.isnan(left), np.isnan(right)):
        return False
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    if not finite.any():
        return True
    return bool(np.abs(left - right)[finite].max() <= max(tolerance * scale_of(left), 1e-13))


def find(name: str, alignment: Alignment) -> Places | None:
    """Where an observation parts: by values, or for gradients and buffers by what leads to them."""
    name = name.removeprefix("in float32, ")
    label, _, detail = name.partition(": ")
    if "gradient" in label:
        by_value = alignment.first_value()
        if by_value is not None:
            return by_value
        found = alignment.first_gradient()
        if found is None and label == "gradient of parameter":
            found = alignment.of_module(detail.partition("[")[0])
        return found
    found = alignment.first_value()
    if found is None and label.startswith("buffer"):
        found = alignment.of_module(detail)
    return found


def twin(text: str, line: int, other: str) -> int | None:
    """The line of ``other`` that assigns what ``line`` of ``text`` does, in the function of the same name.

    Where a function assigns to a name several times, the same of these times.
    """
    ours, theirs = _assignments(text), _assignments(other)
    key = next((k for k, n in ours if n == line), None)
    if key is None:
        return None
    number = [n for k, n in ours if k == key].index(line)
    lines = [n for k, n in theirs if k == key]
    return lines[number] if number < len(lines) else None


def assignment(text: str, target: str) -> int | None:
    """The first line that assigns to ``target``."""
    return next((line for (_, name), line in _assignments(text) if name == target), None)


def _assignments(text: str) -> list[tuple[tuple[str, str], int]]:
    found: list[tuple[tuple[str, str], int]] = []

    def walk(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = "__call__" if child.name == "forward" else child.name
                found.append(((".".join(names), f"def {name}"), child.lineno))
                walk(child, (*names, name))
            elif isinstance(child, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return):
                targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
                shown = ", ".join("return" if t is None else ast.unparse(t) for t in targets)
                found.append(((".".join(names), shown), child.lineno))
            else:
                walk(child, names)

    walk(ast.parse(text), ())
    return found
