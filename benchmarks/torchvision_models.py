"""Converts torchvision's classification models, and compares them with their sources in float64.

    python -m benchmarks.torchvision_models [--wheel PATH] [--only resnet,vgg] [--torch-only]

For each model: the files it needs are converted into a temporary folder; PyTorch's weights are loaded; outputs in
eval and in train mode, the gradients of every parameter and of the input, and the buffers after a train step are
compared. One line each, and the total. The exit status is 0 if all are equal.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
import trace
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.program.workspace import read_text
from t2j_lsp.check.workers.loading import loaded
from t2j_lsp.contract import Finding, Options

from .observed import KINDS, TOLERANCE, Distance, distances
from .torchvision_cases import BUILD, CASES, FAMILIES, Case
from .torchvision_sources import SourcesNotFound, find_sources, package_files, slicer

if TYPE_CHECKING:
    from .torchvision_sides import Reference


@dataclass
class Outcome:
    """What became of one case. ``failure`` is the reason why it could not be compared."""

    case: Case
    gaps: list[tuple[str, Finding]] = field(default_factory=list)
    measured: dict[str, Distance] = field(default_factory=dict)
    failure: str | None = None
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """``equal`` is only said of what was measured; ``runs`` of a PyTorch model that ran on its own."""
        if self.failure:
            return "failed"
        if self.gaps:
            return "gaps"
        if not self.measured:
            return "runs"
        return "equal" if all(d.equal for d in self.measured.values()) else "different"

    def line(self) -> str:
        """One line: verdict, largest error of each kind, time."""
        errors = "  ".join(f"{d.error:8.1e}" for d in self.measured.values())
        return f"{self.case.label:30} {self.verdict:10} {errors:58} {self.seconds:6.1f} s"

    def details(self) -> Iterator[str]:
        if self.failure:
            yield self.failure
        yield from (f"{file}:{f.span.line}: {f.name}: {f.reason}" for file, f in self.gaps)
        yield from (f"{kind}: {d.error:.1e} at {d.where}" for kind, d in self.measured.items() if not d.equal)


@cache
def _converted(path: Path, text: str) -> tuple[str, tuple[Finding, ...]]:
    from t2j_lsp.api import convert_file

    translation = convert_file(path, Options(x64=True), text.encode()).translation
    return translation.code, translation.gaps


Lines = set[tuple[str, int]]


def run_traced(function: Callable[..., Reference], *arguments: object) -> tuple[Reference, Lines]:
    """The function's value, and every line of a model's source that ran for it."""
    tracer = trace.Trace(count=1, trace=0, ignoredirs=[sys.prefix, sys.base_prefix])
    value: Reference = tracer.runfunc(function, *arguments)
    return value, {(str(Path(file).resolve()), line) for file, line in tracer.results().counts}


def convert_case(case: Case, root: Path, out: Path, text: str, ran: Lines) -> list[tuple[str, Finding]]:
    """Convert the files that a case needs into ``out``; the gaps in lines that ran in PyTorch."""
    gaps = []
    for name, module in slicer(root, case.file, text).cut(BUILD).files.items():
        path = Path(name)
        code, findings = _converted(path, module.text)
        relative = path.relative_to(root.resolve())
        gaps += [(str(relative), gap) for gap in findings if _ran(gap, path, ran)]
        target = out / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(code, encoding="utf-8")
        for init in package_files(out, target):
            init.touch()
    return gaps


def _ran(gap: Finding, path: Path, ran: Lines) -> bool:
    """Whether a line of a gap's statement ran."""
    return any((str(path.resolve()), line) in ran for line in range(gap.span.line, gap.span.end_line + 1))


def measure(
    case: Case,
    root: Path,
    out: Path,
    *,
    torch_only: bool = False,
    forward_only: bool = False,
    show_traceback: bool = False,
) -> Outcome:
    """Convert and compare one case. Whatever goes wrong is its outcome: the other cases must still run."""
    from .torchvision_sides import run_forward, run_jax, run_torch, trace_with_dropout

    outcome = Outcome(case)
    start = time.perf_counter()
    stage = "PyTorch"
    try:
        text = case.text(read_text(root / case.file))
        with loaded(slicer(root, case.file, text).cut(BUILD)) as module:
            reference, ran = run_traced(run_torch, getattr(module, BUILD), case.shape)
        if not torch_only:
            stage = "convert"
            outcome.gaps = convert_case(case, root, out, text, ran)
            stage = "JAX"
            with loaded(Slicer(out / case.file).cut(BUILD)) as module:
                build = getattr(module, BUILD)
                if forward_only:
                    outcome.measured = {"eager": run_forward(build, reference)}
                else:
                    observed, eager = run_jax(build, reference)
                    outcome.measured = {**distances(reference.observed, observed), "eager": eager}
                    stage = "dropout"
                    trace_with_dropout(build, case.shape)
    except Exception as error:  # noqa: BLE001 - one model never stops the rest
        where = traceback.extract_tb(error.__traceback__)[-1]
        first = (str(error).strip() or "(no text)").splitlines()[0]
        outcome.failure = f"{stage}: {type(error).__name__}: {first} ({where.filename}:{where.lineno})"
        if show_traceback:
            traceback.print_exc()
    outcome.seconds = time.perf_counter() - start
    return outcome


def measure_all(cases: Iterable[Case], root: Path, options: argparse.Namespace) -> list[Outcome]:
    """Measure the cases one after the other and print a line each. ``options`` are those of `add_options`."""
    # Before JAX starts. The models are tiny and compilation is most of the time: XLA's optimizations don't pay.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
    outcomes = []
    heads = (kind.replace("_outputs", "").replace("_gradient", "") for kind in (*KINDS, "eager"))
    print(f"{'model':30} {'verdict':10} " + "  ".join(f"{head[:8]:>8}" for head in heads))
    with tempfile.TemporaryDirectory(prefix="t2j-benchmark-") as temporary:
        for case in cases:
            out = (options.keep or Path(temporary)) / case.label.replace(" ", "_").replace("/", ".")
            outcome = measure(
                case,
                root,
                out,
                torch_only=options.torch_only,
                forward_only=options.forward_only,
                show_traceback=options.traceback,
            )
            outcomes.append(outcome)
            print(outcome.line(), flush=True)
            for detail in outcome.details():
                print(f"    {detail}", flush=True)
            gc.collect()
    return outcomes


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of every benchmark that compares models."""
    parser.add_argument("--torch-only", action="store_true", help="only build and run the PyTorch models")
    parser.add_argument("--forward-only", action="store_true", help="only compare eval outputs, run eagerly")
    parser.add_argument("--keep", type=Path, help="write the converted files to this folder and leave them there")
    parser.add_argument("--traceback", action="store_true", help="show where a failure comes from")


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Convert torchvision's models and compare them with their sources.")
    parser.add_argument("--wheel", type=Path, help="a torchvision wheel, or a folder that holds torchvision/")
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, with commas between them")
    add_options(parser)
    options = parser.parse_args(arguments)
    families = [name for name in options.only.split(",") if name]
    if unknown := set(families) - set(FAMILIES):
        parser.error(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    try:
        root = find_sources(options.wheel)
    except SourcesNotFound as error:
        print(error, file=sys.stderr)
        return 2
    cases = [case for case in CASES if case.family in families]
    outcomes = measure_all(cases, root, options)
    wanted = "runs" if options.torch_only else "equal"
    good = [family for family in families if all(o.verdict == wanted for o in outcomes if o.case.family == family)]
    models = sum(o.verdict == wanted for o in outcomes)
    bound = "" if options.torch_only else f" (float64, within {TOLERANCE:g} of scale)"
    print(
        f"{wanted}: {len(good)} of {len(families)} families, {models} of {len(outcomes)} models{bound}; "
        f"{sum(o.seconds for o in outcomes):.0f} s"
    )
    return 0 if len(good) == len(families) else 1


if __name__ == "__main__":
    sys.exit(main())
