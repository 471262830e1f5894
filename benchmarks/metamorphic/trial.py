"""One changed program: converted, compared with the conversion of the original, and checked where they differ."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.program.objects import checking_order, find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import Finding, ObjectVerdict, Options, T2JError, Translation, VerdictKind

from . import changes as _changes  # noqa: F401 - they register themselves
from .change import CHANGES, Changed
from .corpora import Program
from .sameness import Conversion, restored

UNCHANGED, SAME, EQUIVALENT = "unchanged", "same text", "equivalent"
NO_VERDICT, NOT_CHECKED = "no verdict", "not checked"
GAP, DIFFERENT, UNCHECKED, CRASH, INVALID = "new gap", "different", "unchecked", "crash", "invalid change"
FAILURES = (GAP, DIFFERENT, UNCHECKED, CRASH, INVALID)


Tried = tuple[str, tuple[str, ...]]
"""A program's name and the changes that were made, one after the other."""


@dataclass(frozen=True)
class Outcome:
    """What became of one changed program."""

    program: str
    changes: tuple[str, ...]
    result: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def tried(self) -> Tried:
        """What it is the outcome of."""
        return self.program, self.changes


def translated(program: Program, text: str) -> Translation:
    """A program's text converted where the program stands."""
    return convert_file(program.path, Options(), text.encode()).translation


@dataclass
class Trial:
    """The trials of one program. ``pool`` has the workers; None to convert and compare texts alone."""

    program: Program
    pool: Pool | None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        self.verdicts: dict[str, ObjectVerdict] = {}

    @cached_property
    def original(self) -> Translation:
        return translated(self.program, self.program.text)

    @cached_property
    def gaps(self) -> set[str]:
        return {_reason(gap) for gap in self.original.gaps}

    @cached_property
    def conversion(self) -> Conversion:
        return Conversion(self.program.path, self.original.code)

    @cached_property
    def slicer(self) -> Slicer:
        return Slicer(self.program.path, self.program.text)

    @cached_property
    def objects(self) -> list[str]:
        """The objects of the original, users before what they use."""
        return [o.name for o in checking_order(find_objects(self.slicer, self.program.objects))]

    def of(self, changes: Sequence[str], seed: str) -> Outcome:
        """The outcome of applying ``changes`` one after the other."""
        start = time.perf_counter()
        result, detail = self._of(changes, seed)
        return Outcome(self.program.name, tuple(changes), result, detail, time.perf_counter() - start)

    def _of(self, changes: Sequence[str], seed: str) -> tuple[str, str]:
        changed = applied(self.program.text, changes, f"{self.program.name} {seed}")
        if changed is None:
            return UNCHANGED, ""
        try:
            compile(changed.text, "<changed>", "exec", dont_inherit=True)
        except SyntaxError as error:
            return INVALID, str(error)
        try:
            translation = translated(self.program, changed.text)
        except T2JError as error:
            return CRASH, str(error)
        except Exception as error:  # noqa: BLE001 - a crash of the converter is what this looks for
            return CRASH, f"{type(error).__name__}: {error}"
        new = [gap for gap in translation.gaps if restored(_reason(gap), changed.renamed) not in self.gaps]
        if len(translation.gaps) > len(self.original.gaps) or new and not self.gaps:
            return GAP, "; ".join(f"line {g.span.line}: {g.name}: {g.reason}" for g in new or translation.gaps)
        other = Conversion(self.program.path, restored(translation.code, changed.renamed))
        if other.whole is not None and other.whole == self.conversion.whole:
            return SAME, ""
        apart = self._apart(other)
        if not apart:
            return SAME, ""
        return self._checked(changed, translation, apart)

    def _apart(self, other: Conversion) -> list[str]:
        """What is to be checked of a program that is converted otherwise."""
        return [name for name in self.objects if self._differs(other, name)]

    def _differs(self, other: Conversion, name: str) -> bool:
        try:
            return other.parts(name) != self.conversion.parts(name)
        except (KeyError, StopIteration, SyntaxError):
            return True

    def _checked(self, changed: Changed, translation: Translation, apart: list[str]) -> tuple[str, str]:
        """The verdict on the objects whose conversion is another one, where the original is equivalent."""
        if self.pool is None:
            return NOT_CHECKED, ", ".join(apart)
        covered: set[str] = set()
        for name in apart:
            if name in covered or self._verdict(self.program.text, self.original, name).verdict != _EQUIVALENT:
                continue
            verdict = self._checked_object(changed.text, translation, changed.new(name))
            if verdict.verdict is not VerdictKind.EQUIVALENT:
                return str(verdict.verdict), f"{name}: {verdict.reason}"
            covered |= self._used_by(name)
        return (EQUIVALENT, ", ".join(apart)) if covered else (NO_VERDICT, "the original has none")

    def _used_by(self, name: str) -> set[str]:
        """The objects that run when one does."""
        cut = self.slicer.cut(name)
        main = next(m for m in cut.modules if m.name == cut.module)
        body = self.slicer.scope.body
        return {str(getattr(body[index], "name", "")) for index, _ in main.keep}

    def _verdict(self, text: str, translation: Translation, name: str) -> ObjectVerdict:
        if name not in self.verdicts:
            self.verdicts[name] = self._checked_object(text, translation, name)
        return self.verdicts[name]

    def _checked_object(self, text: str, translation: Translation, name: str) -> ObjectVerdict:
        assert self.pool is not None
        report = check_files(
            self.program.path, translation.code, [name], pool=self.pool, source_text=text, stage="numeric",
            source_map=translation.source_map, timeout=self.timeout, eager=False, initial=False, causes=False,
            neighbour=neighbour,
        )  # fmt: skip
        return report.objects[0]


_EQUIVALENT = VerdictKind.EQUIVALENT


def neighbour(path: Path) -> str:
    return convert_file(path, Options()).translation.code


def _reason(gap: Finding) -> str:
    return f"{gap.name}: {gap.reason}"


def applied(text: str, changes: Sequence[str], seed: str) -> Changed | None:
    """The text after all of the changes; None where one of them finds no place."""
    done = Changed(text)
    for name in changes:
        step = CHANGES[name].of(done.text, seed)
        if step.text == done.text:
            return None
        done = done.then(step)
    return done
