"""One changed training program: run in PyTorch as it was and as it is changed, and beside its conversion.

A change that makes PyTorch print other numbers is none, and counts as `invalid change`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from t2j_lsp.check.messages import ProgramRun
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.programs.comparison import BOUNDS, Comparer
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.contract import ProgramReport, Translation, VerdictKind

from .change import Changed
from .sameness import Conversion
from .trial import EQUIVALENT, INVALID, NO_VERDICT, Trial, neighbour

PROGRAM = "the program"


class _Recorder:
    """A pool that keeps the first of PyTorch's runs that it is asked for."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.run: ProgramRun | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)

    def request(self, kind: str, method: str, *args: Any, **message: Any) -> Any:
        answer = self.pool.request(kind, method, *args, **message)  # type: ignore[arg-type]
        if kind == "torch" and self.run is None:
            self.run = ProgramRun.from_plain(answer)
        return answer


class ProgramTrial(Trial):
    """The trials of a program that is run from its start to its end."""

    def _apart(self, other: Conversion) -> list[str]:
        return [PROGRAM]

    def _checked(self, changed: Changed, translation: Translation, apart: list[str]) -> tuple[str, str]:
        if translation.gaps:
            return NO_VERDICT, "the original has gaps, too"
        if self.pool is None:
            return super()._checked(changed, translation, apart)
        original, before = self._original_run
        if original.verdict is not VerdictKind.EQUIVALENT or before is None:
            return NO_VERDICT, f"the original: {original.verdict}: {original.reason}"
        report, after = self._run(changed.text, translation)
        if after is not None and (problem := _other_output(before, after)):
            return INVALID, problem
        if report.verdict is VerdictKind.EQUIVALENT:
            return EQUIVALENT, ""
        line = report.divergence.torch.line if report.divergence and report.divergence.torch else 0
        return str(report.verdict), f"line {line}: {report.reason}"

    @cached_property
    def _original_run(self) -> tuple[ProgramReport, ProgramRun | None]:
        return self._run(self.program.text, self.original)

    def _run(self, text: str, translation: Translation) -> tuple[ProgramReport, ProgramRun | None]:
        """The verdict on a text and its conversion, and PyTorch's run."""
        assert self.pool is not None
        recorder: Any = _Recorder(self.pool)
        report = run_program(
            self.program.path, translation.code, RunSettings(timeout=self.timeout), pool=recorder,
            neighbour=neighbour, source_map=translation.source_map, source_text=text,
        )  # fmt: skip
        return report, recorder.run


def _other_output(before: ProgramRun, after: ProgramRun) -> str:
    """How a changed program's output differs from the original's, both run by PyTorch; empty where it doesn't."""
    if (before.failure is None) != (after.failure is None) or before.exit_code != after.exit_code:
        return f"in PyTorch, it fails: line {after.line}: {after.failure}"
    runs = [ProgramRun(printed=run.printed, failure=run.failure) for run in (before, after)]
    differences = Comparer(*runs, [], BOUNDS["float32"]).compare().differences
    return f"in PyTorch, the change prints something else: {differences[0].what}" if differences else ""
