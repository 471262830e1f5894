"""Runs a whole PyTorch program and its conversion, and says whether what comes out agrees: `run_program`."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2j_lsp.check.messages import ProgramRun
from t2j_lsp.check.process.compile_cache import project_of
from t2j_lsp.check.process.containment import projects
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import Kind, RemoteError, TimedOut, WorkerError
from t2j_lsp.check.program.slice import Slice, Slicer
from t2j_lsp.check.program.workspace import read_text
from t2j_lsp.check.requests import JaxProgramRequest, ProgramRequest, TorchProgramRequest
from t2j_lsp.check.verdict.refusals import refusal, refused
from t2j_lsp.contract import (
    MARK,
    Divergence,
    Finding,
    Location,
    ProgramReport,
    SideTimes,
    SourceMapEntry,
    VerdictKind,
)

from .comparison import BOUNDS, Comparer, ProgramComparison, ProgramDifference

_SEED = 0
FORWARD: Mapping[Kind, str] = {"torch": "forward", "jax": "__call__"}
"""The method of a module that is its forward pass."""


class NotRunError(Exception):
    """There is no verdict; the text says why."""


@dataclass(frozen=True)
class RunSettings:
    """How programs are run: their arguments, the optimizer steps they make at most, and seconds for each run.

    ``synthetic``: data sets that are not there are made up, and loaders end after a few batches.
    """

    arguments: Sequence[str] = ()
    steps: int | None = None
    timeout: float = 600.0
    wide: bool = False
    synthetic: bool = False


def run_program(
    source: Path,
    converted: Path | str,
    settings: RunSettings,
    *,
    pool: Pool | None = None,
    device: str = "auto",
    torch_python: str | None = None,
    jax_python: str | None = None,
    readable: Sequence[Path | str] = (),
    neighbour: Callable[[Path], str] | None = None,
    source_map: Sequence[SourceMapEntry] | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
    cancelled: Callable[[], bool] = lambda: False,
    source_text: str | None = None,
    converted_text: str | None = None,
    packages: Mapping[str, Path] | None = None,
) -> ProgramReport:
    """Runs a program and its conversion from the same start, and compares all that comes out.

    ``converted`` is the converted file or its text; ``neighbour`` gives the converted text of other files that it
    imports, and ``source_map`` which of its lines are which of the source's. ``source_text`` and ``converted_text`` are
    the contents of the two files where they are not those on disk, and ``packages`` the folders of converted packages
    that stand elsewhere, by the names under which the conversion imports them. Raises SourceError where a file can't be
    read or parsed. Whatever goes wrong later is a verdict ``unchecked``.
    """
    torch_side = Slicer(source, source_text)
    if isinstance(converted, Path):
        jax_side = Slicer(converted, converted_text)
    else:
        jax_side = Slicer(source, converted, neighbour or read_text, packages)
    files = [source, *([converted] if isinstance(converted, Path) else [])]
    with contextlib.ExitStack() as stack:
        if pool is None:
            folders = [*readable, source.resolve().parent, *projects(*files)]
            own = Pool(torch_python, jax_python, device, project=project_of(source), readable=folders, quick=False)
            pool = stack.enter_context(own)
            pool.start()
        run = _Run(pool, torch_side, jax_side, settings, source_map, on_progress, cancelled)
        report = run.report()
        report.device, report.containment = pool.device_name, pool.containment
    return report


def not_converted(gaps: Iterable[Finding]) -> ProgramReport:
    """The report on a conversion with gaps: it is not run."""
    gaps = list(gaps)
    places = "1 place" if len(gaps) == 1 else f"{len(gaps)} places"
    reason = f"{places} of it left as PyTorch: nothing was run"
    return ProgramReport(VerdictKind.UNCHECKED, reason, gaps=tuple(sorted({gap.span.line for gap in gaps})))


class _Run:
    """Both programs, run as often as the verdict needs."""

    def __init__(
        self,
        pool: Pool,
        torch_side: Slicer,
        jax_side: Slicer,
        settings: RunSettings,
        source_map: Sequence[SourceMapEntry] | None,
        on_progress: Callable[[str], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self.pool, self.settings, self.source_map = pool, settings, source_map
        self.sides: dict[Kind, Slicer] = {"torch": torch_side, "jax": jax_side}
        self.slices = {kind: side.whole() for kind, side in self.sides.items()}
        classes = {kind: list(_classes(self.slices[kind])) for kind in FORWARD}
        defining = (_defining(classes[kind], method) for kind, method in FORWARD.items())
        self.classes = sorted(set.intersection(*defining))
        """The module classes that both programs have: their draws are counted apart."""
        underived = {node.name for node in classes["torch"] if not node.bases}
        self.underived = sorted(underived & {node.name for node in classes["jax"]})
        self.on_progress, self.cancelled = on_progress, cancelled

    def report(self) -> ProgramReport:
        """The verdict: in float32 first, then, where the two part by more than PyTorch moves, in float64."""
        try:
            return self._decided()
        except (NotRunError, WorkerError) as error:
            hint = "; --steps N runs the first N optimizer steps" if isinstance(error, TimedOut) else ""
            return ProgramReport(VerdictKind.UNCHECKED, f"{error}{hint}")

    def _decided(self) -> ProgramReport:
        wide = self.settings.wide
        torch, jax = self._both(wide)
        times = {
            "torch": SideTimes(torch.seconds, torch.step_seconds),
            "jax": SideTimes(jax.seconds, jax.step_seconds),
        }
        report = ProgramReport(VerdictKind.EQUIVALENT, steps=torch.steps, stopped=torch.stopped, times=times)
        report.notes = [*dict.fromkeys(jax.problems), *_draws(torch, jax)]
        report.synthetic = tuple(dict.fromkeys((*torch.stood_in, *jax.stood_in)))
        if torch.failure is not None or torch.exit_code:
            report.failed = _end(torch)
        comparison = self._compared(report, torch, jax, wide)
        if (comparison.differences or comparison.is_chaotic) and not wide and torch.failure is None:
            comparison = self._in_float64(report, comparison, torch)
        report.values = comparison.values
        if comparison.differences:
            report.verdict = VerdictKind.DIFFERENT
            report.divergence = self._divergence(comparison.differences[0])
            report.reason = report.divergence.what
        elif comparison.is_chaotic:
            report.verdict = VerdictKind.UNCHECKED
            report.reason = "chaotic: from first values moved by a rounding, PyTorch itself gets other numbers"
            report.reason += "; --steps N compares its first N optimizer steps" if torch.steps else ""
        elif report.failed is not None:
            report.reason = f"the original fails, and the conversion the same way: {report.failed}"
        elif not any(one.numbers or one.count for one in comparison.values.values()):
            report.verdict = VerdictKind.UNCHECKED
            report.reason = "the program puts nothing out that could be compared"
        return report

    def _in_float64(self, report: ProgramReport, narrow: ProgramComparison, rough: ProgramRun) -> ProgramComparison:
        """The comparison where rounding is a billion times smaller; the one that was made if that can't be."""
        try:
            torch, jax = self._both(True)
            if torch.failure is not None:  # it says float32 somewhere: in float32 it ran
                raise NotRunError(f"the original fails there: {_end(torch)}")
            comparison = self._compared(report, torch, jax, True, rough)
        except NotRunError as error:
            report.precision = "float32"
            report.notes.append(f"not decided in float64: {error}")
            return narrow
        if narrow.differences and not comparison.differences:
            first = narrow.differences[0]
            report.notes.append(f"in float32 they part by rounding: {first.what}{_at(first)}")
        elif narrow.is_chaotic and not comparison.is_chaotic:
            report.notes.append("chaotic in float32: from first values moved by a rounding, PyTorch gets other numbers")
        return comparison

    def _compared(
        self, report: ProgramReport, torch: ProgramRun, jax: ProgramRun, wide: bool, rough: ProgramRun | None = None
    ) -> ProgramComparison:
        """The comparison, with what PyTorch moves measured where it is needed."""
        report.precision = "float64" if wide else "float32"
        bounds = BOUNDS[report.precision]
        comparison = Comparer(torch, jax, [], bounds, rough).compare()
        if comparison.differences:
            self.on_progress("measuring what PyTorch itself moves")
            moved = [self._torch(wide, moved=bounds.moved, steps=torch.steps if torch.stopped else None)]
            comparison = Comparer(torch, jax, moved, bounds, rough).compare()
        end = self._ends(torch, jax)
        if end is not None:
            return ProgramComparison(comparison.values, [*comparison.differences[:1], end])
        return comparison

    def _both(self, wide: bool) -> tuple[ProgramRun, ProgramRun]:
        words = " in float64" if wide else ""
        self.on_progress(f"running the PyTorch program{words}")
        torch = self._torch(wide)
        if torch.failure is not None:
            self._refuse_outside("torch", torch)
        if torch.exit_code == 2 and not self.settings.arguments:
            raise NotRunError("the PyTorch program ends with exit code 2: arguments for it go behind --")
        self.on_progress(f"running the conversion{words}")
        steps = torch.steps if torch.stopped else None
        jax = self._ask("jax", JaxProgramRequest(**self._asked("jax", wide, steps), made=torch.made))
        if jax.failure is not None:
            self._refuse_outside("jax", jax)
            if torch.failure is None:
                self._refuse_unconverted(jax)
        if torch.stopped and jax.stopped and jax.steps > torch.steps:
            # A compiled step updates by several optimizers; PyTorch was stopped between two of them.
            torch = self._torch(wide, steps=jax.steps)
        return torch, jax

    def _torch(self, wide: bool, moved: float | None = None, steps: int | None = None) -> ProgramRun:
        asked = self._asked("torch", wide, self.settings.steps if steps is None else steps)
        return self._ask("torch", TorchProgramRequest(**asked, moved=moved))

    def _asked(self, kind: Kind, wide: bool, steps: int | None) -> dict[str, Any]:
        """What both sides are asked alike."""
        return {
            "slice": self.slices[kind],
            "folder": str(self.sides["torch"].path.parent),
            "arguments": list(self.settings.arguments),
            "seed": _SEED,
            "synthetic": self.settings.synthetic,
            "wide": wide,
            "steps": steps,
            "budget": self.settings.timeout / 2 if kind == "torch" and steps is None else None,
            "classes": self.classes,
            "forward": FORWARD[kind],
            "underived": self.underived,
        }

    def _ask(self, kind: Kind, request: ProgramRequest) -> ProgramRun:
        try:
            answer = self.pool.request(kind, "program", self.settings.timeout, self.cancelled, **request.to_plain())
        except RemoteError as error:
            raise NotRunError(f"the {kind} side can't run the program: {error}") from error
        return ProgramRun.from_plain(answer)

    def _refuse_outside(self, kind: Kind, run: ProgramRun) -> None:
        """Raises where a program failed for what is around it here, and not for what it computes."""
        failure = run.failure
        assert failure is not None
        met = self.pool.refused[kind]
        if refused(failure) or met and not set(failure.bases) & _OWN_FAULTS:
            raise NotRunError(refusal(kind, met[0] if met else str(failure)) + self._hint())
        if kind == "torch" and self.pool.device_name != "cpu" and _MIXES_DEVICES.search(str(failure)):
            raise NotRunError(f"the PyTorch program fails on a GPU (line {run.line}): {failure}")
        if kind == "torch" and _NEEDS_GPU.search(str(failure)):
            raise NotRunError(f"the PyTorch program needs a GPU (line {run.line}): {failure}")
        absent = {"ImportError", "FileNotFoundError", "MemoryError", "URLError"} & set(failure.bases)
        if absent or self._imports(kind, run.line):
            side = "PyTorch program" if kind == "torch" else "conversion"
            raise NotRunError(f"the {side} needs what is not here (line {run.line}): {failure}{self._hint()}")

    def _imports(self, kind: Kind, line: int) -> bool:
        """Whether a line of the program is an import: what fails there is no statement of its own."""
        nodes = ast.walk(ast.parse(self.sides[kind].text))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        return any(node.lineno <= line <= (node.end_lineno or node.lineno) for node in imports)

    def _refuse_unconverted(self, run: ProgramRun) -> None:
        """Raises where a conversion failed, and a file that it imports wasn't converted as a whole."""
        own = str(self.sides["jax"].path)
        for module in self.slices["jax"].modules:
            if module.path != own and (left := module.text.count(MARK)):
                places = "1 place" if left == 1 else f"{left} places"
                name = Path(module.path).name
                raise NotRunError(f"{places} of {name} left as PyTorch, and the conversion fails: {run.failure}")

    def _hint(self) -> str:
        """What may help where a program lacks something."""
        data = "torchvision" in self.sides["torch"].text or ".txt" in self.sides["torch"].text
        hint = "; --data synthetic makes up data sets of torchvision and texts"
        return hint if data and not self.settings.synthetic else ""

    def _ends(self, torch: ProgramRun, jax: ProgramRun) -> ProgramDifference | None:
        """Where one of the two fails and the other does not fail in the same way and place."""
        if _end(torch) is None and _end(jax) is None:
            return None
        same_kind = (torch.failure is None) == (jax.failure is None) and torch.exit_code == jax.exit_code
        if same_kind and (torch.failure is None or self._same_place(torch, jax)):
            return None
        places = (str(self.sides["torch"].path), torch.line), (str(self.sides["jax"].path), jax.line)
        if _end(torch) is None:
            return ProgramDifference(f"only the conversion fails: {_end(jax)}", *places)
        also = f", and the conversion: {_end(jax)}" if _end(jax) is not None else ", and the conversion does not"
        return ProgramDifference(f"the original fails: {_end(torch)}{also}", *places)

    def _same_place(self, torch: ProgramRun, jax: ProgramRun) -> bool:
        """Whether both fail in lines that are each other's; without a map, after the same output.

        What PyTorch does in a line JAX may do in a function that this line calls: in a train step, or a helper.
        """
        if self.source_map is None:
            return len(torch.printed) == len(jax.printed)
        around = [e for e in self.source_map if e.source_line <= torch.line <= e.source_end_line]
        least = min((e.source_end_line - e.source_line for e in around), default=0)
        own = [e for e in around if e.source_end_line - e.source_line == least]
        return any(e.line <= line <= e.end_line for e in own for line in (jax.line, *jax.calls))

    def _divergence(self, first: ProgramDifference) -> Divergence:
        """The places of a difference; a list or a module is shown where the program fills or makes it."""
        file, line = first.torch
        if not line and (match := re.match(r"(\w+)\b", first.what)):
            line = _filled(self.sides["torch"].text, match[1])
        own_file, own_line = first.jax
        if line and not own_line and (match := re.match(r"(\w+)\b", first.what)):
            own_line = _filled(self.sides["jax"].text, match[1])
        return Divergence(
            Location(file or str(self.sides["torch"].path), line) if line else None,
            Location(own_file or str(self.sides["jax"].path), own_line) if own_line else None,
            first.what,
        )


_NEEDS_GPU = re.compile(
    r"not compiled with CUDA|no NVIDIA driver|No (?:CUDA|HIP) GPUs are available|CUDA device but torch"
)
"""What PyTorch says where a program asks for a GPU and there is none; JAX asks for no device."""
_MIXES_DEVICES = re.compile(r"on the same device|\bcuda\b", re.IGNORECASE)
"""What PyTorch says where a program that only ever ran on the CPU leaves a tensor there; to JAX it is no fault.

It names the device, or its type of tensors: ``Input type (torch.FloatTensor) and weight type
(torch.cuda.FloatTensor)``, ``can't convert cuda:0 device type tensor to numpy``.
"""
_OWN_FAULTS = {
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "LookupError",
    "NameError",
    "TypeError",
    "ValueError",
}
"""What a program raises by itself, whatever was refused to it before."""


def _draws(torch: ProgramRun, jax: ProgramRun) -> list[str]:
    """Draws that the two programs do not have in common; programs that were stopped may lack some."""
    if torch.stopped or torch.failure is not None or jax.failure is not None:
        return []
    wrong = [(what, torch.draws.get(what, 0), number) for what, number in jax.draws.items()]
    return [f"JAX draws {what} {of_jax} times, and PyTorch {n} times" for what, n, of_jax in wrong if of_jax > n]


def _classes(program: Slice) -> Iterator[ast.ClassDef]:
    for module in program.modules:
        yield from (node for node in ast.walk(ast.parse(module.text)) if isinstance(node, ast.ClassDef))


def _defining(classes: Iterable[ast.ClassDef], method: str) -> set[str]:
    """The names of those of some classes that define a method."""
    return {
        node.name
        for node in classes
        if any(isinstance(part, ast.FunctionDef) and part.name == method for part in node.body)
    }


def _end(run: ProgramRun) -> str | None:
    """How a program failed; None where it did not."""
    if run.failure is not None:
        return f"line {run.line}: {' '.join(str(run.failure).split())[:300]}"
    return f"exit code {run.exit_code}" if run.exit_code else None


def _at(difference: ProgramDifference) -> str:
    return f" (line {difference.torch[1]})" if difference.torch[1] else ""


def _filled(text: str, name: str) -> int:
    """The line that fills a list, or makes what a name stands for; 0 where none does."""
    for pattern in (rf"\b{name}(\[.*\])?\.(append|extend)\(", rf"^\s*{name}\s*="):
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(pattern, line):
                return number
    return 0
