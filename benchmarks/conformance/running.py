"""Converts the cases of one operator, runs them beside PyTorch, and says of each what came out."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import numpy as np
import torch
from flax import nnx

from t2j_lsp.api import convert
from t2j_lsp.contract import Finding
from tests.rules.compare import BATCH, Compare, Traced, Wanted, arrays_differ, run_together, run_torch, trace
from tests.rules.spellings import Case

from .cases import cases, records, said
from .deviations import COMPARED_OTHERWISE, MADE_SINGLE

TOLERANCE = 1e-9  # of the largest absolute value in PyTorch's array, or of 1
SINGLE_TOLERANCE = 1e-5  # of what is float32 on either side
HEADER = "import torch\n\n\n"
SAID = """from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import BFloat16, Bool, Complex64, Complex128, Float16, Float32, Float64
    from jaxtyping import Int8, Int16, Int32, Int64, UInt8


"""
"""In front of cases whose annotations say what their tensors are."""
WORST = ("right", "gap", "noted", "unshown", "crash", "wrong")
"""What may come of a case, best first. ``noted``: it differs, and the conversion has a note on the call. ``unshown``:
JAX raises, because a tensor has no axes, is an empty vector, or holds integers or bools, which the source doesn't say;
where annotations say it, nothing crashes."""
MODULE = 100
"""Functions that are converted as one file."""


@dataclass
class Problem:
    """A case that is not right."""

    outcome: str
    spelling: str
    text: str
    inputs: str
    why: str
    small: bool = False
    """Whether one of its tensors is empty or has no axes."""
    case: str = ""


@dataclass
class Result:
    """What came of all cases of one operator in one dtype."""

    operator: str
    dtype: str
    key: str = ""
    """Hash of what was run: results with the same key are the same."""
    shown: str = ""
    """The same of the cases with annotations that say what tensors are."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Cases by spelling and outcome."""
    plain: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same without empty tensors and tensors without axes."""
    annotated: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same as `counts`, where annotations say what tensors without axes, elements or floats are."""
    problems: list[Problem] = field(default_factory=list)
    textless: list[str] = field(default_factory=list)
    refused: int = 0
    """Cases that PyTorch itself doesn't take."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """What came of each case, by its name; not kept."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "outcomes": {}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        return cls(**{**data, "problems": [Problem(**p) for p in data["problems"]]})

    def move(self, problem: Problem, outcome: str) -> None:
        """Counts a case as another outcome."""
        for counts in (self.counts, self.plain):
            of = counts.get(problem.spelling, {})
            if counts is self.counts or not problem.small:
                of[problem.outcome] -= 1
                of[outcome] = of.get(outcome, 0) + 1
        problem.outcome = outcome

    def counted(self, of: str = "counts") -> dict[str, dict[str, int]]:
        """Cases by spelling and outcome: all, those of ``plain`` tensors, or as they are ``annotated``."""
        counts: dict[str, dict[str, int]] = getattr(self, of)
        return counts or (self.counts if of == "annotated" else {})

    def worst(self, spelling: str, of: str = "counts") -> str | None:
        """The worst outcome of a spelling in ``counts``, ``plain`` or ``annotated``; None if it has no case."""
        counts = self.counted(of).get(spelling, {})
        return max((outcome for outcome, number in counts.items() if number), key=WORST.index, default=None)


def prepare() -> None:
    """Both libraries compute in float64, also what starts from Python numbers."""
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)


def run(operator: str, dtype: str, limit: int | None = None, known: Result | None = None) -> Result:
    """Converts and runs all cases; answers with ``known`` where the converted code is what it was."""
    op = records()[operator]
    every, textless = cases(op, dtype, limit)
    result = Result(operator, dtype, textless=textless)
    files = _files(every, HEADER)
    result.key = _hash(files)
    annotated = _files([one for case in every if (one := said(case)).text != case.text], SAID)
    result.shown = _hash(annotated)
    if known is not None and (known.key, known.shown) == (result.key, result.shown):
        return known
    _run_files(op, files, result)
    _annotate(op, every, files, annotated, result)
    return result


def _annotate(op: Any, every: list[Case], files: list[_File], annotated_files: list[_File], result: Result) -> None:
    """Runs the annotated cases whose code is another, or that were not right without annotations."""
    bodies = {name: body for file in files for name, body in file.bodies.items()}
    for file in annotated_files:
        file.cases = [c for c in file.cases if file.differs(c, bodies) or result.outcomes.get(c.name) != "right"]
    annotated = Result(result.operator, result.dtype)
    _run_files(op, annotated_files, annotated)
    for problem in list(result.problems):
        if problem.outcome == "crash" and annotated.outcomes.get(problem.case, "crash") not in ("crash", "wrong"):
            result.move(problem, "unshown")
    for case in every:
        outcome = annotated.outcomes.get(case.name) or result.outcomes.get(case.name)
        if outcome is not None:
            of = result.annotated.setdefault(case.spelling, {})
            of[outcome] = of.get(outcome, 0) + 1
    result.problems += [p for p in annotated.problems if p.outcome in ("crash", "wrong") and p.case not in _bad(result)]


def _bad(result: Result) -> set[str]:
    return {p.case for p in result.problems if p.outcome in ("crash", "wrong")}


def _hash(files: list[_File]) -> str:
    converted = "\0".join([f.code + repr(f.marks) for f in files])
    return hashlib.sha256(converted.encode()).hexdigest()[:16]


def _files(every: list[Case], header: str) -> list[_File]:
    return [_File.of(every[i : i + MODULE], header) for i in range(0, len(every), MODULE)]


def _run_files(op: Any, files: list[_File], result: Result) -> None:
    traced = [one for file in files for one in file.trace(op, result)]
    for start in range(0, len(traced), BATCH):
        _run_batch(traced[start : start + BATCH])


@dataclass
class _File:
    """Cases that are converted as one file."""

    cases: list[Case]
    source: str
    code: str
    marks: dict[str, list[Finding]]
    """Gaps and notes by the case they are in."""

    @classmethod
    def of(cls, every: list[Case], header: str) -> _File:
        source = header + "\n\n".join(case.text for case in every)
        translation = convert(source, x64=True)
        functions = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
        spans = [(f.name, f.lineno, f.end_lineno or 0) for f in functions]
        marks: dict[str, list[Finding]] = {}
        for finding in translation.findings:
            for name, start, end in spans:
                if start <= finding.span.line <= end and finding.differs:
                    marks.setdefault(name, []).append(finding)
        return cls(every, source, translation.code, marks)

    @functools.cached_property
    def bodies(self) -> dict[str, str]:
        """The converted bodies by the names of their functions."""
        return {n.name: ast.unparse(n.body) for n in ast.parse(self.code).body if isinstance(n, ast.FunctionDef)}  # type: ignore[arg-type]

    def differs(self, case: Case, bodies: dict[str, str]) -> bool:
        """Whether a case's code or marks are others than in a file with these bodies."""
        return self.bodies[case.name] != bodies[case.name] or case.name in self.marks

    def trace(self, op: Any, result: Result) -> list[Traced]:
        space: dict[str, Any] = {}
        exec(self.source, space)
        converted: dict[str, Any] = {}
        exec(self.code, converted)
        alike: dict[tuple[str, int, int], list[_Observed]] = {}
        wanted: dict[tuple[str, int, int], Wanted] = {}
        for case in self.cases:
            try:
                want = run_torch(space[case.name], case.tensors)
            except Exception:  # noqa: BLE001 - whatever PyTorch raises, it doesn't take this spelling of the sample
                result.refused += 1
                continue
            observed = _Observed(case, result, self.marks.get(case.name, []))
            gaps = [f for f in observed.marks if f.severity == "gap"]
            if gaps:
                observed.settle("gap", gaps[0].message)
                continue
            key = (self.bodies[case.name], case.sample, len(case.tensors))
            wanted.setdefault(key, want)
            alike.setdefault(key, []).append(observed)
        traced = []
        for key, group in alike.items():
            case = group[0].case
            function = _with_rngs(converted[case.name])
            report = functools.partial(_report, group)
            outcome = trace(function, case.tensors, wanted[key], report, _comparison(op, case))
            if outcome is not None:
                traced.append(outcome)
        return traced


@dataclass
class _Observed:
    """One case, and what is known of it so far."""

    case: Case
    result: Result
    marks: list[Finding]
    settled: bool = False

    def settle(self, outcome: str, why: str = "") -> None:
        """Counts the case once: what is seen first of it is the reason."""
        if self.settled:
            return
        self.settled = True
        if outcome in ("crash", "wrong") and self.marks:
            outcome, why = "noted", f"{why} (noted: {self.marks[0].message})"
        self.result.outcomes[self.case.name] = outcome
        small = any(t.numel() == 0 or t.ndim == 0 for t in self.case.tensors)
        for counts in [self.result.counts] if small else [self.result.counts, self.result.plain]:
            of = counts.setdefault(self.case.spelling, {})
            of[outcome] = of.get(outcome, 0) + 1
        if outcome != "right":
            inputs = ", ".join(f"{str(t.dtype)[6:]}{list(t.shape)}" for t in self.case.tensors)
            text = "; ".join(line.strip() for line in self.case.text.splitlines()[1:])
            why = " ".join(why.split())[:300]
            self.result.problems.append(Problem(outcome, self.case.spelling, text, inputs, why, small, self.case.name))


def _report(group: list[_Observed], what: str | None, problem: object) -> None:
    if what == "jit":
        return
    for observed in group:
        if what is None:
            observed.settle("right")
        elif isinstance(problem, Exception):
            observed.settle("crash", f"{what}: {type(problem).__name__}: {problem}")
        else:
            observed.settle("wrong", f"{what}: {problem}")


def _with_rngs(function: Any) -> Any:
    """The converted function; one that draws numbers is handed a generator."""
    if "rngs" not in inspect.signature(function).parameters:
        return function
    return lambda *arrays: function(*arrays, rngs=nnx.Rngs(0))


def _run_batch(batch: list[Traced]) -> None:
    try:
        run_together(batch)
    except Exception:  # noqa: BLE001 - one of them fails to compile or to run: each by itself
        for one in batch:
            try:
                run_together([one])
            except Exception as error:  # noqa: BLE001 - whatever JAX raises is the finding
                one.report("values", error)


def _comparison(op: Any, case: Case) -> Compare:
    otherwise = COMPARED_OTHERWISE.get(op.full_name) or COMPARED_OTHERWISE.get(op.name)
    kinds = {t.dtype for t in case.tensors if t.is_floating_point() or t.is_complex()}
    single = not kinds or torch.float32 in kinds or op.name in MADE_SINGLE

    if otherwise is not None and otherwise.only not in case.text:
        otherwise = None

    def compare(got: list[Any], want: list[Any], what: str) -> str | None:
        if otherwise is None or otherwise.values and what == "values":
            return differ(got, want, single)
        if otherwise.tolerance:
            return differ(got, want, single, otherwise.tolerance)
        problem = differ(got[:1], want[:1], single) if otherwise.first and what == "values" else None
        return problem or otherwise.compare(got, want, what)

    return compare


def differ(got: list[Any], want: list[Any], single: bool, tolerance: float = TOLERANCE) -> str | None:
    """What differs, or None: numbers of values, shapes, exact dtypes, values.

    ``single``: an input is float32, or none has floating point, so that the default dtype decides, which is float32 in
    converted code.
    """
    if len(got) != len(want):
        return f"{len(got)} values, PyTorch has {len(want)}"
    for position, (g, w) in enumerate(zip(got, want, strict=True)):
        problem = _value_differs(g, w, single, tolerance)
        if problem is not None:
            return f"value {position}: {problem}"
    return None


def _value_differs(got: Any, want: Any, single: bool, tolerance: float) -> str | None:
    if not isinstance(want, np.ndarray | bool | int | float | complex):
        same = got == want if isinstance(want, torch.Size | None.__class__) else str(got).endswith(str(want)[6:])
        return None if same else f"{got}, PyTorch has {want}"
    g, w = np.asarray(got), np.asarray(want)
    if isinstance(want, np.ndarray) and g.dtype != w.dtype and not (single and {g.dtype, w.dtype} <= DEFAULTS):
        return f"dtype {g.dtype}, PyTorch has {w.dtype}"
    return arrays_differ(g, w, SINGLE_TOLERANCE if single else tolerance)


DEFAULTS = {np.dtype(t) for t in (np.float32, np.float64, np.complex64, np.complex128)}
"""Dtypes that may stand for each other where the default dtype decides."""


def totals(results: list[Result]) -> Counter[tuple[str, str, str]]:
    """Operators by dtype, spelling and the worst of their cases."""
    out: Counter[tuple[str, str, str]] = Counter()
    for result in results:
        for spelling in result.counts:
            worst = result.worst(spelling)
            if worst is not None:
                out[result.dtype, spelling, worst] += 1
    return out
