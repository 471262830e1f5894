"""How much of PyTorch converts: every sample of its own test databases, beside PyTorch.

    python -m benchmarks.conformance [--only PATTERN] [--sets operators,modules,optimizers] [--dtypes float,int,bool]
        [--samples N] [--processes N] [--results FOLDER] [--again]

Each sample becomes source text in every spelling that the operator has (function, method, in place, operator,
``out=``), goes through the public `convert`, and runs in both libraries: values, exact dtypes, shapes, and gradients in
float64. An operator counts by the worst of its samples: ``right``, ``gap`` (left alone with a reason), ``noted``
(differs, and the conversion says so), ``unshown`` (JAX raises, and the source doesn't show why: see `running.WORST`),
``crash`` and ``wrong`` (differs, and nothing was said). Modules are compared by outputs, gradients and state,
optimizers and schedulers by 50 steps of training. What differs is listed in ``FOLDER/problems.txt``. Results stay in
``FOLDER/results.jsonl``; an operator runs again when its converted code changed. ``--samples`` takes at most N samples
of each operator, evenly spread.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path

from . import modules, optimizers
from .cases import is_public, records
from .running import Result
from .table import problems_text, table
from .workers import Workers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformance")
    parser.add_argument("--only", default="", help="operators whose full name this pattern matches from its start")
    parser.add_argument("--sets", default="operators,modules,optimizers")
    parser.add_argument("--dtypes", default="float,int,bool", help="of operators")
    parser.add_argument("--samples", type=int, help="at most N samples of each operator")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=Path("build/conformance"))
    parser.add_argument("--again", action="store_true", help="run what is known, too")
    parser.add_argument("--timeout", type=float, default=400.0, help="seconds for one operator in one dtype")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    kept = options.results / "results.jsonl"
    known = {} if options.again else read(kept)
    sets = options.sets.split(",")
    operators = [n for n, op in records().items() if is_public(op)] if "operators" in sets else []
    every = [(name, dtype) for dtype in options.dtypes.split(",") for name in operators]
    every += [(name, modules.SET) for name in modules.records() if modules.SET in sets]
    every += [(name, optimizers.SET) for name in optimizers.programs() if optimizers.SET in sets]
    tasks = [task for task in every if re.match(options.only or "", task[0])]
    done = run_all(tasks, known, options, kept)
    (options.results / "problems.txt").write_text(problems_text(done), encoding="utf-8")
    print(table(done))
    return int(any(p.outcome in ("crash", "wrong") for r in done for p in r.problems))


def read(path: Path) -> dict[tuple[str, str], Result]:
    """Results of former runs; the last of each counts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    every = [Result.from_json(json.loads(line)) for line in lines]
    return {(r.operator, r.dtype): r for r in every}


def run_all(
    tasks: list[tuple[str, str]], known: dict[tuple[str, str], Result], options: argparse.Namespace, kept: Path
) -> list[Result]:
    """Results of all tasks, as they come kept in the file."""
    started, done = time.monotonic(), []
    with Workers(options.processes, options.timeout) as workers, kept.open("a", encoding="utf-8") as file:
        for result in workers.run([(*task, options.samples, known.get(task)) for task in tasks]):
            done.append(result)
            before = known.get((result.operator, result.dtype))
            if before is None or (before.key, before.shown) != (result.key, result.shown):
                print(json.dumps(result.to_json()), file=file, flush=True)
            if sys.stderr.isatty() or len(done) % 50 == 0:
                seconds = time.monotonic() - started
                print(f"{len(done)}/{len(tasks)} {seconds:.0f} s {result.operator}", file=sys.stderr, flush=True)
    return done


if __name__ == "__main__":
    sys.exit(main())
