"""How many compiled calls a converted program makes from one optimizer step to the next, its train step among them.

    python -m benchmarks.step_calls [FILE_OR_FOLDER...] [--timeout SECONDS]

Each operation of JAX outside of a compiled function is a call of its own, of some 10 to 100 microseconds. Times of
small steps move with whatever else the machine does; these counts don't. Printed is the median over the later half of
a run, of steps in which nothing was compiled, and what was called most often, for each step. JAX's profiler counts.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import gzip
import io
import itertools
import json
import os
import runpy
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.programs import programs
from benchmarks.step_times import FOLDER, jax_steps, measured
from t2j_lsp.api import convert_file
from t2j_lsp.commands.output import print_table
from t2j_lsp.contract import Options

MARK, CALL = "optimizer step", "PjitFunction"
"""Our event for each step, and JAX's for each call."""


class _Marks(list[float]):
    """The times of the steps, each of which is marked in the profile."""

    def append(self, time: float) -> None:
        import jax

        super().append(time)
        with jax.profiler.TraceAnnotation(MARK):
            pass


def counted(path: str) -> list[Counter[str]]:
    """Run a program in this process; its calls between each two steps of the later half of the run."""
    import jax

    times, compiled = _Marks(), list[float]()
    jax_steps(times, compiled)
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    with tempfile.TemporaryDirectory() as folder:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        profile = jax.profiler.trace(folder, profiler_options=options)
        with profile, contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            runpy.run_path(path, run_name="__main__")
        (trace,) = Path(folder).rglob("*.trace.json.gz")
        events = [event for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if "ts" in event]
    spans = [*zip(itertools.pairwise(times), itertools.pairwise(_places(events, MARK)), strict=True)]
    calls = _outermost([event for event in events if event["name"].startswith(CALL)])
    out: list[Counter[str]] = []
    for (start, end), (first, last) in spans[len(spans) // 2 :]:
        if not any(start < at <= end for at in compiled):
            inside = calls[bisect.bisect(calls, (first, "")) : bisect.bisect(calls, (last, ""))]
            out.append(Counter(name.removeprefix(CALL).strip("()") for _, name in inside))
    return out


def _outermost(calls: list[dict[str, Any]]) -> list[tuple[float, str]]:
    """When each call begins, and its name; what the profiler tells inside of one isn't another."""
    out: list[tuple[float, str]] = []
    end = 0.0
    for event in sorted(calls, key=lambda event: event["ts"]):
        if event["ts"] >= end:
            out.append((event["ts"], event["name"]))
            end = event["ts"] + event["dur"]
    return out


def _places(events: list[dict[str, Any]], name: str) -> list[float]:
    return sorted(event["ts"] for event in events if event["name"] == name)


def row(path: Path, converted: Path, timeout: float) -> tuple[str, ...] | None:
    """A line of the table; None for a program that fails or has no such steps."""
    counts = measured(["benchmarks.step_calls", "--inside", str(converted)], path.stem, timeout)
    each = [Counter(one) for one in counts or ()]
    if not each:
        return None
    most = sum(each, Counter()).most_common(5)
    frequent = ", ".join(f"{name} {count / len(each):.1f}" for name, count in most)
    return path.stem, f"{statistics.median(one.total() for one in each):.0f}", frequent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=[FOLDER])
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(counted(str(options.paths[0]))))
        return
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in programs([path.resolve() for path in options.paths]):
            translation = convert_file(path, Options()).translation
            if not translation.gaps:
                converted = Path(folder, path.name)
                converted.write_text(translation.code, encoding="utf-8")
                rows += filter(None, [row(path, converted, options.timeout)])
    print_table(("program", "calls", "most often"), rows, numeric=[1])


if __name__ == "__main__":
    main()
