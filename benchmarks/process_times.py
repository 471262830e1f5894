"""Whole processes, as users start them: seconds of a program in PyTorch, and of its conversion, interpreters included.

    python -m benchmarks.process_times [FILE_OR_FOLDER...] [--rounds N] [--timeout SECONDS]

Without a path, those of tests/programs. Each round runs both, in turn, in a folder of its own, with one thread for each
library; the table has the medians. "First" is the conversion's first run, which compiles everything; in the later ones
JAX finds its programs in a cache that it keeps between runs, where `JAX_COMPILATION_CACHE_DIR` names one. Programs with
gaps, and those that end with an error on either side, are counted and named, not timed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.programs import PROGRAMS, programs
from t2j_lsp.api import convert_file
from t2j_lsp.commands.output import print_table
from t2j_lsp.contract import Options

HEADERS = ("program", "torch s", "first s", "cached s", "first / torch", "cached / torch")


@dataclass(frozen=True)
class Times:
    """Seconds of one program's processes."""

    torch: float
    first: float
    cached: float


class Failed(Exception):
    """A process that did not end as it should, with the last line that it wrote."""


def seconds_of(file: Path, cache: Path, timeout: float) -> float:
    """Runs a program in the folder that it lies in."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, file.name],
            cwd=file.parent,
            env=environment,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{file.name} took more than {timeout:.0f} s") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise Failed(f"{file.name}: {last[0]}")
    return time.perf_counter() - start


def times_of(path: Path, code: str, rounds: int, timeout: float) -> Times:
    """Both sides in turn, each with its own copy of what lies beside the program."""
    with tempfile.TemporaryDirectory(prefix="t2j-times-") as folder:
        source, target, cache = (Path(folder, name) for name in ("torch", "jax", "cache"))
        for side in (source, target):
            side.mkdir()
            shutil.copyfile(path, side / path.name)
        (target / path.name).write_text(code)
        torch, jax = [], []
        for _ in range(rounds + 1):
            torch.append(seconds_of(source / path.name, cache, timeout))
            jax.append(seconds_of(target / path.name, cache, timeout))
        return Times(median(torch), jax[0], median(jax[1:]))


def row(name: str, times: Times) -> tuple[str, ...]:
    """A line of the table."""
    numbers = (times.torch, times.first, times.cached, times.first / times.torch, times.cached / times.torch)
    return (name, *(f"{number:.2f}" for number in numbers))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=PROGRAMS[:1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300.0)
    arguments = parser.parse_args()
    timed: dict[str, Times] = {}
    left: list[str] = []
    for path in programs(arguments.paths):
        translation = convert_file(path, Options()).translation
        if translation.gaps:
            left.append(f"{path.stem}: gaps")
            continue
        try:
            timed[path.stem] = times_of(path, translation.code, arguments.rounds, arguments.timeout)
        except Failed as error:
            left.append(str(error))
            continue
        print(*row(path.stem, timed[path.stem]), file=sys.stderr)
    rows = [row(name, times) for name, times in timed.items()]
    if timed:
        sums = zip(*((one.torch, one.first, one.cached) for one in timed.values()), strict=True)
        rows.append(row("together", Times(*map(sum, sums))))
    print_table(HEADERS, rows, numeric=range(1, len(HEADERS)))
    for line in left:
        print(f"not timed: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
