"""Finds the first statement where two programs part, from the values that their statements had in one run.

Statements are paired in order by the function they are in and by what they assign; helpers of the converted file, which
torch's side lacks, stay unpaired, and so a mistake inside one is found at the statement that calls it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from t2j_lsp.check.messages import StatementSite, Traced, Tree
from t2j_lsp.check.protocol import Array, NdArray, as_float64
from t2j_lsp.check.verdict.compare import arrays_of, kind_of, scale_of
from t2j_lsp.contract import Location

from .statement_lines import assignment

WIDE, NARROW = 1e-8, 1e-4
"""Parts of the scale by which values may differ in float64 and float32."""
_LAYOUTS = ("moveaxis", "transpose", "einshape", "rearrange")
"""What a conversion that keeps channels last inside says somewhere."""

TELLING = 4
"""Elements from which the agreement of two arrays is no accident."""
_GAP = 2500
"""Pairs of statements that are compared at most, between two that have the same names."""

Places = tuple[Location | None, Location | None]


@dataclass(frozen=True)
class TracedEvent:
    """A statement that ran, or the input or output of a submodule, and its value.

    ``norms`` are those of the gradients of a sum over it with respect to every parameter and input, by name.
    """

    site: StatementSite
    value: Tree
    norms: dict[str, float] | None

    @property
    def module(self) -> str | None:
        """The submodule whose input or output this is."""
        return self.site.function[1:-1] if self.site.function.startswith("<") else None


class Alignment:
    """The runs of two programs side by side. ``texts`` are the two files', ``names`` those of the objects that ran.

    ``pairs`` are events that stand for each other, and ``named`` those of them that do so by their names.
    """

    def __init__(
        self,
        torch: Traced,
        jax: Traced,
        wide: bool = True,
        texts: tuple[str, str] = ("", ""),
        names: tuple[str, str] = ("", ""),
    ) -> None:
        self.torch, self.jax = _events(torch), _events(jax)
        self.sites = jax.sites
        self.torch_run, self.wide = torch, wide
        self.full = torch.full or jax.full
        self.error = jax.error
        self.calls = torch.calls
        self.owners = torch.owners
        self.texts = texts
        self.layouts = any(word in texts[1] for word in _LAYOUTS)
        self.tolerance = WIDE if wide else NARROW
        self.names = names
        torch_keys, jax_keys = [e.site.key for e in self.torch], [self.key(e) for e in self.jax]
        matcher = difflib.SequenceMatcher(None, torch_keys, jax_keys, autojunk=False)
        self.named = [(b.a + i, b.b + i) for b in matcher.get_matching_blocks() for i in range(b.size)]
        self.pairs = sorted([*self.named, *self._by_value()])

    def key(self, event: TracedEvent) -> tuple[str, str]:
        """The key of a JAX event in torch's names, where the object that stands for torch's has another name."""
        function, target = event.site.key
        torch, jax = self.names
        if function == jax != torch:
            module = any(e.site.function.startswith(f"{torch}.") for e in self.torch)
            return f"{torch}.__call__" if module else torch, target
        if jax != torch and function.startswith(f"{jax}."):
            return torch + function.removeprefix(jax), target
        return function, target

    def _by_value(self) -> Iterator[tuple[int, int]]:
        """Pairs of statements under different names that have the same value, between those that have the same name."""
        ends = (len(self.torch), len(self.jax))
        start = (0, 0)
        for stop in [*self.named, ends]:
            t, j = start
            if (stop[0] - t) * (stop[1] - j) <= _GAP:
                for k in range(j, stop[1]):
                    alike = [i for i in range(t, stop[0]) if self._same_array(self.torch[i], self.jax[k])]
                    if alike:
                        at = next((i for i in alike if not self.torch[i].module), alike[0])
                        yield at, k
                        t = at + 1
            start = (stop[0] + 1, stop[1] + 1)

    def _same_array(self, torch: TracedEvent, jax: TracedEvent) -> bool:
        if jax.module:
            return False
        torch_arrays, jax_arrays = (list(arrays_of(e.value).values()) for e in (torch, jax))
        if (
            len(torch_arrays) != 1
            or len(jax_arrays) != 1
            or kind_of(torch_arrays[0]) != "floating"
            or torch_arrays[0].shape != jax_arrays[0].shape
        ):
            return False
        return int(np.prod(torch_arrays[0].shape)) >= TELLING and same(
            torch_arrays[0], jax_arrays[0], self.tolerance, False
        )

    def places(self, torch: TracedEvent | None, jax: TracedEvent | None) -> Places:
        """The lines of two events: for the output of a submodule, those that make it."""
        if torch is not None and jax is not None and torch.module and torch.site.target == "out":
            made = self.construction(torch.module)
            if made is not None:
                return made
        return _location(torch), _location(jax)

    def construction(self, name: str) -> Places | None:
        """The lines that make the submodule, parameter or buffer of a name, in the constructor of a user's class."""
        while name and name not in self.owners:
            name = name.rpartition(".")[0]
        if not name:
            return None
        owner, attribute = self.owners[name]
        lines = [assignment(text, f"self.{attribute}", owner) for text in self.texts]
        if lines[1] is None or not self.torch or not self.jax:
            return None
        files = [self.torch[0].site.file, self.jax[0].site.file]
        torch_place, jax_place = (None if n is None else Location(f, n) for f, n in zip(files, lines, strict=True))
        return torch_place, jax_place

    def parting(self) -> tuple[int, int] | None:
        """The first pair of events whose values differ."""
        return next(((t, j) for t, j in self.pairs if not self.agree(self.torch[t], self.jax[j])), None)

    def first_value(self) -> Places | None:
        """Where a value first differs."""
        parting = self.parting()
        if parting is None:
            return None
        t, j = parting
        paired = {j for _, j in self.pairs}
        # One statement may have become several that assign to the same name.
        first = j
        while first and first - 1 not in paired and self.jax[first - 1].site.key == self.jax[j].site.key:
            first -= 1
        for earlier in range(first, j):
            if not self.agree(self.torch[t], self.jax[earlier]):
                return self.places(self.torch[t], self.jax[earlier])
        return self._unmoved(t, j) or self.places(self.torch[t], self.jax[j])

    def _unmoved(self, t: int, j: int) -> Places | None:
        """The call of a layer of flax whose input has the axes in torch's order, though it wants channels last."""
        torch = self.torch[t]
        if not torch.module or torch.site.target != "out":
            return None
        for a, b in reversed([p for p in self.pairs if p < (t, j)]):
            given = self.jax[b]
            if given.module != torch.module or given.site.target != "in":
                continue
            if "channels last" not in given.site.reads:
                return None
            torch_array, jax_array = (list(arrays_of(e.value).values())[:1] for e in (self.torch[a], given))
            same = (
                torch_array
                and jax_array
                and len(torch_array[0].shape) > 2
                and torch_array[0].shape == jax_array[0].shape
            )
            return (_location(self.torch[a]), _location(given)) if same else None
        return None

    def moved(self, place: Location) -> Places | None:
        """The last statement that gave a value which a failing one reads, if its axes are in another order."""
        reads = next((set(s.reads) for s in self.sites if (s.file, s.line) == (place.file, place.line)), set())
        for t, j in reversed(self.pairs):
            if self.jax[j].site.target not in reads:
                continue
            torch_arrays, jax_arrays = (list(arrays_of(e.value).values()) for e in (self.torch[t], self.jax[j]))
            if any(tuple(a.shape) != tuple(b.shape) for a, b in zip(torch_arrays, jax_arrays, strict=False)):
                return self.places(self.torch[t], self.jax[j])
        return None

    def agree(self, torch: TracedEvent, jax: TracedEvent) -> bool:
        """Whether two paired events have the same value, as far as that can be compared."""
        if torch.module and len(arrays_of(torch.value)) != len(arrays_of(jax.value)):
            return True
        return _agree(torch.value, jax.value, self.tolerance, self.layouts)

    def last_return(self) -> Places | None:
        """The statement that gives the output: at the border, the order of axes is torch's."""
        for t, j in reversed(self.pairs):
            if self.jax[j].site.target == "return":
                return self.places(self.torch[t], self.jax[j])
        return None

    def first_gradient(self) -> Places | None:
        """The first statement through which other gradients reach the parameters and inputs."""
        tolerance = 100 * self.tolerance
        for t, j in self.named:
            torch_norms, jax_norms = self.torch[t].norms, self.jax[j].norms
            if torch_norms is None or jax_norms is None:
                continue
            names = torch_norms.keys() & jax_norms.keys()
            scale = max((torch_norms[n] for n in names), default=0.0)
            if any(not abs(torch_norms[n] - jax_norms[n]) <= tolerance * scale + 1e-12 for n in names):
                return self.places(self.torch[t], self.jax[j])
        return None

    def of_module(self, name: str) -> Places | None:
        """The line that makes the submodule which owns a parameter or buffer, or else the line that calls it."""
        owner = name.rpartition(".")[0]
        if owner in self.owners:
            return self.construction(owner)
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
        event = next(
            (j for t, j in self.pairs if (self.torch[t].site.file, self.torch[t].site.line) == (file, line)), None
        )
        return None if event is None else _location(self.jax[event])

    def torch_line(self, place: Location) -> Location | None:
        """The torch statement beside a JAX one, or else the one after the last that was reached."""
        for t, j in self.pairs:
            if (self.jax[j].site.file, self.jax[j].site.line) == (place.file, place.line):
                return _location(self.torch[t])
        last = max((t for t, _ in self.pairs), default=-1)
        return _location(self.torch[last + 1]) if last + 1 < len(self.torch) else None


def _events(run: Traced) -> list[TracedEvent]:
    return [TracedEvent(run.sites[e.site], e.value, e.norms) for e in run.events]


def _location(event: TracedEvent | None) -> Location | None:
    return None if event is None or not event.site.line else Location(event.site.file, event.site.line)


def _numbers(value: Tree) -> list[float] | None:
    """A number or a sequence of numbers: sizes, scales, settings."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    numbers = [float(v) for v in items if isinstance(v, bool | int | float)]
    return numbers if numbers and len(numbers) == len(items) else None


def _agree(left: Tree, right: Tree, tolerance: float, layouts: bool = True) -> bool:
    """Whether two values agree, as far as they can be compared: numbers, and arrays, channels last where allowed."""
    left_numbers, right_numbers = _numbers(left), _numbers(right)
    if left_numbers is not None and right_numbers is not None:
        if len(left_numbers) != len(right_numbers):
            return 1 in (len(left_numbers), len(right_numbers))  # A size for each axis instead of one for all.
        a, b = np.asarray(left_numbers), np.asarray(right_numbers)
        return _close(a, b, tolerance) or (
            layouts and len(left_numbers) > 1 and _close(np.sort(a), np.sort(b), tolerance)
        )
    mine, other = list(arrays_of(left).values()), list(arrays_of(right).values())
    if not mine or not other:
        return True
    if len(mine) != len(other):
        return False
    return all(same(a, b, tolerance, layouts) for a, b in zip(mine, other, strict=True))


def same(a: Array, b: Array, tolerance: float, layouts: bool) -> bool:
    """Whether two arrays have the same values, in another order of axes where layouts may differ."""
    if kind_of(a) != kind_of(b):
        return {kind_of(a), kind_of(b)} == {"integer", "bool"}
    left = as_float64(a)
    return any(_close(left, right, tolerance) for right in arrangements(left, as_float64(b), layouts))


def arrangements(left: NdArray, right: NdArray, layouts: bool) -> Iterator[NdArray]:
    """``right`` in the shape of ``left``: as it is, or where layouts may differ without axes of 1 or channels last."""
    if left.shape == right.shape:
        yield right
    if not layouts:
        return
    if sorted(left.shape) != sorted(right.shape):
        if [n for n in left.shape if n != 1] == [n for n in right.shape if n != 1]:
            yield right.reshape(left.shape)
    elif right.ndim >= 3:
        yield from (m for m in (np.moveaxis(right, -1, 1), np.moveaxis(right, -1, -3)) if m.shape == left.shape)


def _close(left: NdArray, right: NdArray, tolerance: float) -> bool:
    if not np.array_equal(np.isnan(left), np.isnan(right)):
        return False
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    if not finite.any():
        return True
    return bool(np.abs(left[finite] - right[finite]).max() <= max(tolerance * scale_of(left), 1e-13))


def find(name: str, alignment: Alignment) -> Places | None:
    """Where an observation parts: by values, or for gradients and buffers by what leads to them."""
    name = name.removeprefix("in float32, ")
    label, _, detail = name.partition(": ")
    places = alignment.first_value()
    if places is None and "output" in label:
        places = alignment.last_return()
    if places is None and "gradient" in label:
        places = alignment.first_gradient()
    if places is None and (label.startswith(("buffer", "initial values")) or label == "gradient of parameter"):
        detail = detail.partition("[")[0]
        places = (alignment.construction(detail) if label == "initial values" else None) or alignment.of_module(detail)
    return places
