"""Unit tests on both sides: run on the PyTorch program first, translated, and run on the conversion.

A test that does not pass on the PyTorch program, in every one of several runs, tells nothing and is left out. One
that passes there and fails on the conversion is a finding. Nothing here decides a verdict.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import Kind, RemoteError
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.program.workspace import read_text
from t2j_lsp.check.requests import TestsRequest
from t2j_lsp.contract import Severity, Translation

RUNS = 3
"""Of the tests on the PyTorch program, each with a seed of its own."""
Translate = Callable[[Path, str], Translation]
"""Converts a test file, given its path and text."""
_MISSING = "PytestMissingError"


@dataclass(frozen=True)
class TestOutcome:
    """How a test ended on one side: ``passed``, ``failed`` or ``skipped``."""

    __test__ = False  # for pytest, which takes the name for that of a class of tests

    name: str
    outcome: str
    message: str = ""
    line: int | None = None
    """The line of the test file that its error went through last."""

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.name}: {self.message or self.outcome}{where}"


@dataclass
class TestReport:
    """What became of the tests of a program."""

    __test__ = False

    torch_code: str
    jax_code: str
    tests: int = 0
    """Tests that were written or collected."""
    dropped: list[TestOutcome] = field(default_factory=list)
    """Tests that do not pass on the PyTorch program in every run."""
    untranslated: list[tuple[str, str]] = field(default_factory=list)
    """Tests that use something without a rule, with the reason."""
    agree: list[str] = field(default_factory=list)
    """Tests that pass on both sides."""
    differ: list[TestOutcome] = field(default_factory=list)
    """Tests that pass on the PyTorch program and not on the conversion."""

    @property
    def kept(self) -> int:
        return self.tests - len(self.dropped)

    @property
    def translated(self) -> int:
        return self.kept - len(self.untranslated)

    def summary(self) -> str:
        counts = f"{self.tests} test{'s' * (self.tests != 1)}, {self.kept} kept, {self.translated} translated"
        return f"{counts}, {len(self.agree)} agree, {len(self.differ)} differ"

    def to_json(self) -> dict[str, Any]:
        """The counts, and each test that is not among those that agree."""
        counts = {"tests": self.tests, "kept": self.kept, "translated": self.translated}
        details = {
            "dropped": [vars(one) for one in self.dropped],
            "untranslated": [{"name": name, "reason": reason} for name, reason in self.untranslated],
            "differ": [vars(one) for one in self.differ],
        }
        return {**counts, "agree": len(self.agree), **details, "agreeing": self.agree}


class PytestMissing(Exception):  # a state of the user's environment, told in its text
    """pytest is not installed in an interpreter of a check."""


@dataclass(frozen=True)
class Programs:
    """A PyTorch file and its conversion, and how the files around them are read."""

    source: Path
    converted: str
    neighbour: Callable[[Path], str] = read_text
    """The converted text of another file of the project."""
    tests_at: dict[Path, Path] = field(default_factory=dict)
    """Where test files that lie elsewhere count as lying: what they import is looked up from there."""

    def torch(self, tests: Path, text: str) -> Slicer:
        """A test file of the PyTorch program."""
        return Slicer(self.tests_at.get(tests, tests), text)

    def jax(self, tests: Path, text: str) -> Slicer:
        """The test file of the conversion, which is imported under the PyTorch file's name."""
        own = self.source.resolve()
        place = self.tests_at.get(tests, tests)
        return Slicer(place, text, lambda path: self.converted if path.resolve() == own else self.neighbour(path))


def run_tests(pool: Pool, kind: Kind, tests: Slicer, timeout: float, repeat: int = 1) -> list[dict[str, TestOutcome]]:
    """The outcomes of the tests of a file by their names, in each of several runs.

    Raises WorkerError where the worker gives up, RemoteError where the file does not load, PytestMissing.
    """
    names = [name for name in tests.scope.bindings if not name.startswith("__")]
    if not names:
        return [{} for _ in range(repeat)]
    part = tests.cut(names[0], names[1:])
    try:
        runs = pool.request(kind, "tests", timeout, **TestsRequest(slice=part, repeat=repeat).to_plain())
    except RemoteError as error:
        if error.failure.type == _MISSING:
            raise PytestMissing(
                f"tests run with pytest, which is not installed beside {kind}: pip install pytest"
            ) from error
        raise
    return [{name: TestOutcome(name, **details) for name, details in run.items()} for run in runs]


def compare_tests(
    pool: Pool,
    programs: Programs,
    tests: Path,
    text: str,
    translate: Translate,
    timeout: float = 120.0,
    on_progress: Callable[[str], None] = lambda line: None,
) -> TestReport:
    """Runs a test file on the PyTorch program, and what passes there, translated, on the conversion.

    Raises WorkerError, RemoteError and PytestMissing where nothing can be run.
    """
    on_progress("running the tests on the PyTorch program")
    kept, dropped = on_source(pool, programs, tests, text, timeout)
    translation = translate(tests, text)
    report = TestReport(text, translation.code, len(kept) + len(dropped), dropped)
    gaps = gaps_of(translation)
    report.untranslated = [(name, gaps[function_of(name)]) for name in kept if function_of(name) in gaps]
    left = [name for name in kept if function_of(name) not in gaps]
    if left:
        on_progress("running the tests on the conversion")
        report.agree, report.differ = on_conversion(pool, programs, tests, report.jax_code, left, timeout)
    return report


def on_source(
    pool: Pool, programs: Programs, tests: Path, text: str, timeout: float
) -> tuple[list[str], list[TestOutcome]]:
    """The tests that pass on the PyTorch program in every run, and how the others end.

    Raises WorkerError, RemoteError and PytestMissing where nothing can be run.
    """
    runs = run_tests(pool, "torch", programs.torch(tests, text), timeout, RUNS)
    kept = [name for name in runs[0] if all(name in run and run[name].outcome == "passed" for run in runs)]
    return kept, [_worst(name, runs) for name in runs[0] if name not in kept]


def without(text: str, names: Sequence[str]) -> str:
    """A test file without some of its functions."""
    lines, gone = text.splitlines(keepends=True), set[int]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            end = node.end_lineno or node.lineno
            gone |= set(range(_first(node), end + 1))
            while end < len(lines) and not lines[end].strip():
                end += 1
                gone.add(end)
    return "".join(line for number, line in enumerate(lines, 1) if number not in gone).rstrip() + "\n"


def on_conversion(
    pool: Pool, programs: Programs, tests: Path, code: str, names: Sequence[str], timeout: float
) -> tuple[list[str], list[TestOutcome]]:
    """Which of the named tests pass on a conversion, and how the others end. Raises WorkerError and PytestMissing."""
    try:
        (run,) = run_tests(pool, "jax", programs.jax(tests, code), timeout)
    except RemoteError as error:
        return [], [TestOutcome(name, "failed", f"the converted code does not load: {error}") for name in names]
    missing = "it was not collected"
    ends = [run.get(name, TestOutcome(name, "failed", missing)) for name in names]
    return [e.name for e in ends if e.outcome == "passed"], [e for e in ends if e.outcome != "passed"]


def _worst(name: str, runs: Sequence[dict[str, TestOutcome]]) -> TestOutcome:
    """Why a test is left out: how it failed first, and whether it passes sometimes."""
    ends = [run.get(name, TestOutcome(name, "failed", "it was not collected")) for run in runs]
    failed = next(end for end in ends if end.outcome != "passed")
    if any(end.outcome == "passed" for end in ends):
        return TestOutcome(name, "flickers", f"it passes in some runs only; {failed.message}", failed.line)
    return failed


def function_of(name: str) -> str:
    """The function or method of a test: ``TestNet::test_it`` of ``TestNet::test_it[2-3]``."""
    return name.partition("[")[0]


def gaps_of(translation: Translation) -> dict[str, str]:
    """The tests that hold, or use something that holds, code without a rule, with the first reason."""
    lines = [(f.span.line, f.reason) for f in translation.findings if f.severity is Severity.GAP]
    if not lines:
        return {}
    tree = ast.parse(translation.source)
    definitions = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    reasons: dict[str, str] = {}

    def reason(node: ast.stmt) -> str | None:
        return next((why for line, why in lines if _first(node) <= line <= (node.end_lineno or 0)), None)

    broken = {n.name: why for n in definitions if isinstance(n, ast.FunctionDef) and (why := reason(n))}
    for _ in definitions:
        for node in definitions:
            if isinstance(node, ast.FunctionDef) and node.name not in broken and (used := _named(node) & broken.keys()):
                broken[node.name] = broken[min(used)]
    inside = {n for d in definitions for n in range(_first(d), (d.end_lineno or 0) + 1)}
    outside = next((why for line, why in lines if line not in inside), None)
    for node in definitions:
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        shared = [m for m in methods if isinstance(m, ast.FunctionDef) and not m.name.startswith("test")]
        common = next((why for m in shared if (why := reason(m))), None) if isinstance(node, ast.ClassDef) else None
        for method in methods:
            if isinstance(method, ast.FunctionDef) and method.name.startswith("test"):
                used = _named(method) & broken.keys()
                why = reason(method) or common or (broken[min(used)] if used else None) or outside
                if why:
                    reasons[f"{node.name}::{method.name}" if isinstance(node, ast.ClassDef) else method.name] = why
    return reasons


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _named(node: ast.FunctionDef) -> set[str]:
    """Names that a function reads, and fixtures that it asks for."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        a.arg for a in ast.walk(node) if isinstance(a, ast.arg)
    }
