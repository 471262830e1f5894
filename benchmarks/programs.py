"""Whole programs under `t2j run`: the verdict, the largest difference, and the seconds of both sides.

    python -m benchmarks.programs [FILE_OR_FOLDER...] [--float64] [--steps N] [--timeout SECONDS] [--device gpu]

Without a path, those of tests/programs and tests/projects, and the training scripts of tests/translate/scripts.
Seconds are those of the program, compiling included; interpreters and frameworks are loaded before. Milliseconds are
from one optimizer step to the next, the median. On a GPU, PyTorch runs where the program says, JAX on the card.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.commands.output import print_table
from t2j_lsp.contract import Options, ProgramReport, VerdictKind

TESTS = Path(__file__).parents[1] / "tests"
PROGRAMS = [TESTS / "programs", TESTS / "projects", TESTS / "translate" / "scripts"]
HEADERS = ("program", "verdict", "in", "numbers", "max rel", "torch s", "jax s", "torch ms/step", "jax ms/step")


def programs(paths: list[Path]) -> Iterator[Path]:
    """The Python files that are named, or lie in folders that are; of a folder with a ``main.py`` only that."""
    for path in paths:
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        mains = {file.parent: file for file in files if file.name == "main.py"}
        yield from (f for f in files if f in mains.values() or mains.keys().isdisjoint(f.parents))


def report_of(path: Path, pool: Pool, settings: RunSettings) -> ProgramReport:
    """The verdict on a program and its conversion by the rules."""
    translation = convert_file(path, Options()).translation
    if translation.gaps:
        lines = tuple(sorted({gap.span.line for gap in translation.gaps}))
        return ProgramReport(VerdictKind.UNCHECKED, f"gaps in lines {', '.join(map(str, lines))}", gaps=lines)
    return run_program(
        path,
        translation.code,
        settings,
        pool=pool,
        neighbour=lambda other: convert_file(other, Options()).translation.code,
        source_map=translation.source_map,
    )


def row(path: Path, report: ProgramReport) -> tuple[str, ...]:
    """A line of the table."""
    numbers = sum(one.numbers for one in report.values.values())
    worst = max((one.max_rel_err for one in report.values.values()), default=0.0)
    times = [report.times.get(side) for side in ("torch", "jax")]
    seconds = [f"{one.seconds:.2f}" if one else "" for one in times]
    steps = [f"{1000 * one.step_seconds:.2f}" if one and one.step_seconds is not None else "" for one in times]
    name = path.parent.name if path.name == "main.py" else path.stem
    return (name, str(report.verdict), report.precision, str(numbers), f"{worst:.1e}", *seconds, *steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=PROGRAMS)
    parser.add_argument("--float64", action="store_true")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    arguments = parser.parse_args()
    settings = RunSettings((), arguments.steps, arguments.timeout, arguments.float64)
    rows: list[tuple[str, ...]] = []
    verdicts: Counter[str] = Counter()
    folders = [path.resolve() if path.is_dir() else path.resolve().parent for path in arguments.paths]
    start = time.perf_counter()
    with Pool(device=arguments.device, project=folders[0], readable=folders, quick=False) as pool:
        for path in programs(arguments.paths):
            report = report_of(path, pool, settings)
            rows.append(row(path, report))
            verdicts[str(report.verdict)] += 1
            print("  ".join(rows[-1]), file=sys.stderr)
            place = report.divergence.torch if report.divergence else None
            for text in (report.reason, *report.notes):
                if text:
                    print(f"{path.stem}{f':{place.line}' if place else ''}: {text}", file=sys.stderr)
    print_table(HEADERS, rows, numeric=range(3, len(HEADERS)))
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
    where = f"{pool.device_name}{f' ({pool.fallback})' if pool.fallback else ''}"
    print(f"{sum(verdicts.values())} programs: {counts}; {time.perf_counter() - start:.0f} s on {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
