"""What a train step of a whole program takes its users: each side runs by itself, without `t2j run` around it.

    python -m benchmarks.step_times [FILE_OR_FOLDER...] [--rounds N] [--timeout SECONDS] [--fork]

`benchmarks.programs` compares, and JAX draws PyTorch's random numbers there; here each side is a process that draws
its own. Milliseconds are of processor time, which other work on the machine moves less than the clock, from one
optimizer step to the next, the median of the later half of a run. Steps in which JAX
compiled something are counted by themselves, since a short program still meets operations for the first time there:
the median is that of the others, and ``compiling`` says how many of the later half there were, with their median. A
program of which each step compiles has no other. Each round runs both sides in turn; of several, the least counts.
Below the table is how many programs take at most 1.1 times as long as in PyTorch, and what the later halves took
together, between their steps too.

``--fork`` loads both frameworks once and forks for each run, in an eighth of the time: what to use in between.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import math
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import forks
from benchmarks.programs import programs
from t2j_lsp.api import convert_file
from t2j_lsp.commands.output import print_table
from t2j_lsp.contract import Options

FOLDER = Path(__file__).parents[1] / "tests" / "programs"
HEADERS = ("program", "steps", "torch ms/step", "jax ms/step", "ratio", "compiling", "ms")
BAR = 1.1
COMPILED = "/jax/core/compile/backend_compile_duration"


@dataclass
class Steps:
    """The steps of a side."""

    count: int
    later: int
    """How many times between two steps the later half of them has."""
    plain: float
    """Milliseconds of those of the later half in which nothing was compiled."""
    compiling: float
    compiled: int
    mean: float
    """Milliseconds of those in which nothing was compiled, with what a program does once an epoch."""

    @property
    def milliseconds(self) -> float:
        return self.compiling if math.isnan(self.plain) else self.plain


def torch_steps(times: list[float], compiled: list[float]) -> None:
    """Note when an optimizer of PyTorch has made a step; several behind one backward pass are one step, as in JAX."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    passed = [True]

    def noted(differentiate: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            passed.append(True)
            return differentiate(*arguments, **keywords)

        return call

    def note_step(*_: Any) -> None:
        if passed:
            times.append(time.process_time())
        passed.clear()

    for name in ("backward", "grad"):
        setattr(torch.autograd, name, noted(getattr(torch.autograd, name)))
    register_optimizer_step_post_hook(note_step)


def jax_steps(times: list[float], compiled: list[float]) -> None:
    """Note when each ``nnx.Optimizer`` has made a step: a compiled function made one if its trace has.

    And when something has been compiled.
    """
    from flax import nnx
    from jax import monitoring

    def note_compilation(event: str, seconds: float, **details: Any) -> None:
        if event == COMPILED:
            compiled.append(time.process_time())

    monitoring.register_event_duration_secs_listener(note_compilation)

    update, jit = nnx.Optimizer.update, nnx.jit
    stepping: set[object] = set()
    running: list[object] = []

    def noted_update(self: Any, *arguments: Any, **keywords: Any) -> Any:
        made = update(self, *arguments, **keywords)
        if running:
            stepping.add(running[-1])
        else:
            times.append(time.process_time())
        return made

    def noted_jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda later: noted_jit(later, **options)
        return noted(jit(function, **options))

    def noted(compiled: Callable[..., Any]) -> Callable[..., Any]:
        key = object()

        def call(*arguments: Any, **keywords: Any) -> Any:
            if running:
                return compiled(*arguments, **keywords)
            running.append(key)
            try:
                made = compiled(*arguments, **keywords)
            finally:
                running.pop()
            if key in stepping:
                times.append(time.process_time())
            return made

        return call

    bind = nnx.jit_partial
    nnx.Optimizer.update, nnx.jit = noted_update, noted_jit  # type: ignore[method-assign, assignment]
    nnx.jit_partial = lambda *arguments, **options: noted(bind(*arguments, **options))  # type: ignore[assignment]


def run_side(side: str, path: str) -> Steps:
    """Run a program in this process: what its steps took."""
    times: list[float] = []
    compiled: list[float] = []
    {"torch": torch_steps, "jax": jax_steps}[side](times, compiled)
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        runpy.run_path(path, run_name="__main__")
    spans = list(itertools.pairwise(times))
    later = spans[len(spans) // 2 :]
    compiling = [span for span in later if any(span[0] < at <= span[1] for at in compiled)]
    plain = [span for span in later if span not in compiling]
    mean = 1000 * statistics.fmean(end - start for start, end in plain) if plain else math.nan
    return Steps(len(times), len(later), median(plain), median(compiling), len(compiling), mean)


def median(spans: Sequence[tuple[float, float]]) -> float:
    """The median of some times, in milliseconds."""
    return 1000 * statistics.median(end - start for start, end in spans) if spans else math.nan


def steps_of(side: str, path: Path, timeout: float, fork: bool = False) -> Steps | None:
    """The steps of a program; None where it fails or takes too long."""
    if fork:
        made = forks.in_fork(lambda: asdict(run_side(side, str(path))), path.stem, timeout)
    else:
        made = measured(["benchmarks.step_times", "--side", side, str(path)], path.stem, timeout)
    return Steps(**made) if made is not None else None


def measured(module: Sequence[str], name: str, timeout: float) -> Any:
    """What a benchmark prints as JSON in a process of its own; None where that fails or takes too long."""
    command = [sys.executable, "-m", *module]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=folder, env=environment, timeout=timeout, check=True
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {(str(error.stderr or '').strip().splitlines() or [error])[-1]}", file=sys.stderr)
            return None
    return json.loads(done.stdout.splitlines()[-1])


def least(rounds: Sequence[Steps]) -> Steps:
    """The round that other work disturbed least."""
    best = min(rounds, key=lambda one: one.milliseconds)
    return replace(best, mean=min(one.mean for one in rounds))


def sides_of(path: Path, converted: Path, rounds: int, timeout: float, fork: bool) -> tuple[Steps, Steps] | None:
    """Both sides of a program, in turn; None where one fails or takes too long."""
    torch, jax = list[Steps](), list[Steps]()
    for _ in range(rounds):
        for side, file, steps in (("torch", path, torch), ("jax", converted, jax)):
            made = steps_of(side, file, timeout, fork)
            if made is None:
                return None
            steps.append(made)
    return least(torch), least(jax)


def row(name: str, torch: Steps, jax: Steps) -> tuple[str, ...]:
    """A line of the table."""
    times = (torch.milliseconds, jax.milliseconds, jax.milliseconds / torch.milliseconds)
    compiling = (f"{jax.compiled}/{jax.later}", f"{jax.compiling:.0f}" if jax.compiled else "")
    return (name, str(jax.count), *(f"{one:.2f}" for one in times), *compiling)


def summary(sides: Sequence[tuple[Steps, Steps]]) -> str:
    """How many programs are as fast as in PyTorch, and the time of all."""
    plain = [(torch, jax) for torch, jax in sides if not math.isnan(jax.plain)]
    ratios = [jax.plain / torch.plain for torch, jax in plain]
    together = [sum(side.mean * side.later for side in one) / 1000 for one in zip(*plain, strict=True)]
    bar = f"{sum(ratio <= BAR for ratio in ratios)} of {len(ratios)} programs take at most {BAR} times as long"
    lone = f", and {len(sides) - len(plain)} have only steps that compile" if len(plain) < len(sides) else ""
    if not ratios:
        return f"{bar}{lone}"
    mean = f"the geometric mean is {statistics.geometric_mean(ratios):.2f}"
    return f"{bar}{lone}; {mean}; together {together[0]:.2f} s in PyTorch, {together[1]:.2f} s in JAX"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=[FOLDER])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--fork", action="store_true", help="a fork for each run, not a process of its own")
    parser.add_argument("--side", choices=["torch", "jax"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(asdict(run_side(options.side, str(options.paths[0])))))
        return
    if options.fork:
        forks.load()
    rows: list[tuple[str, ...]] = []
    measured_sides: list[tuple[Steps, Steps]] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in programs([path.resolve() for path in options.paths]):
            translation = convert_file(path, Options()).translation
            if translation.gaps:
                continue
            converted = Path(folder, path.name)
            converted.write_text(translation.code, encoding="utf-8")
            sides = sides_of(path, converted, options.rounds, options.timeout, options.fork)
            if sides is None:
                continue
            measured_sides.append(sides)
            rows.append(row(path.stem, *sides))
            print(*rows[-1], file=sys.stderr, flush=True)
    print_table(HEADERS, rows, numeric=range(1, len(HEADERS)))
    print(summary(measured_sides))


if __name__ == "__main__":
    main()
