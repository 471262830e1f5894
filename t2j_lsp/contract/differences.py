"""Where two programs part: the lines on both sides, the cause that was tried, and their values side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .translation import Span


@dataclass(frozen=True)
class Location:
    """A line of a file, or in a cell of a notebook (from 1)."""

    file: str
    line: int
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{f'cell {self.cell}:' if self.cell is not None else ''}{self.line}"

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "line": self.line, **({"cell": self.cell} if self.cell is not None else {})}


@dataclass(frozen=True)
class Fix:
    """An edit of the converted file after which the check found the two programs to agree at the place."""

    file: str
    span: Span
    new: str
    title: str


@dataclass(frozen=True)
class Divergence:
    """Where the two programs part: a line on each side, and what differs there.

    ``cause`` is only there where it was tried: with ``fix`` applied, the two agree.
    """

    torch: Location | None
    jax: Location | None
    what: str
    cause: str | None = None
    fix: Fix | None = None

    def to_json(self) -> dict[str, Any]:
        places = {side: one.to_json() if one else None for side, one in (("torch", self.torch), ("jax", self.jax))}
        return {**asdict(self), **places}


@dataclass(frozen=True)
class Value:
    """The value that a statement had on one side: where, its form, numbers about it, and the first of its elements.

    ``minimum`` to ``std`` are of the finite elements (their magnitudes, where these are complex) and None where there
    are none. Elements are in torch's order of axes; what is not finite is the text ``nan``, ``inf`` or ``-inf``.
    """

    location: Location | None
    text: str
    shape: tuple[int, ...]
    dtype: str
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    values: tuple[float | str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        numbers = {"min": self.minimum, "max": self.maximum, "mean": self.mean, "std": self.std}
        place = self.location.to_json() if self.location else {}
        form = {"text": self.text, "shape": list(self.shape), "dtype": self.dtype}
        return {**place, **form, **numbers, "values": list(self.values)}


@dataclass(frozen=True)
class Histogram:
    """How the finite elements of both sides fall between common edges, and how many are not finite."""

    edges: tuple[float, ...]
    torch: tuple[int, ...]
    jax: tuple[int, ...]
    torch_nonfinite: int = 0
    jax_nonfinite: int = 0


@dataclass(frozen=True)
class Worst:
    """The element at which two arrays are farthest apart, in torch's order of axes."""

    index: tuple[int, ...]
    torch: float | str
    jax: float | str


@dataclass(frozen=True)
class Step:
    """One statement, or one observation of a whole run such as a gradient, side by side.

    A statement that only one side has has no other value, and ``agree`` is then True: there is nothing to compare it
    with. Errors are None where the forms do not fit. ``layout`` says that the axes are in another order in JAX.
    """

    target: str
    agree: bool
    torch: Value | None
    jax: Value | None
    max_abs_err: float | None = None
    max_rel_err: float | None = None
    histogram: Histogram | None = None
    worst: Worst | None = None
    layout: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "agree": self.agree,
            "max_abs_err": self.max_abs_err,
            "max_rel_err": self.max_rel_err,
            "layout": self.layout,
            "torch": self.torch.to_json() if self.torch else None,
            "jax": self.jax.to_json() if self.jax else None,
            "histogram": asdict(self.histogram) if self.histogram else None,
            "worst": asdict(self.worst) if self.worst else None,
        }


@dataclass(frozen=True)
class Explanation:
    """One run of both programs, statement by statement. ``first`` is the index of the first step that parts.

    ``left_out`` counts steps that are not listed because there were too many. ``cut`` says that the run went on, and
    its later values were too many or too large to be compared.
    """

    steps: tuple[Step, ...]
    first: int | None
    precision: str
    mode: str
    left_out: int = 0
    cut: bool = False

    def to_json(self) -> dict[str, Any]:
        about = {"precision": self.precision, "mode": self.mode, "left_out": self.left_out, "cut": self.cut}
        return {**about, "first": self.first, "steps": [s.to_json() for s in self.steps]}
