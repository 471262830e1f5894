"""How long a check takes, cold and warm, beside the design's numbers, and what dominates it.

    python -m benchmarks.check_times [--repeats 3] [--device gpu] [--source FILE]

A LeNet, or FILE, is converted and checked in all stages: first with fresh workers, which have to import their
frameworks, then with the same workers again. The table gives the seconds of every request to a worker; the rest is this
process's. All of it runs in a new home folder, three times over: on a machine where nothing was checked before, then
with the compiled programs that this left, and then with no folder to keep programs in.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import Kind
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import Options, VerdictKind

LENET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 4 * 4, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
"""
BARS = {"cold": 10.0, "warm": 2.0}
"""Seconds, for a module of this size in all stages."""


class TimedPool(Pool):
    """A pool that adds up the time of its requests."""

    def __init__(self, device: str = "cpu", project: Path | None = None) -> None:
        super().__init__(device=device, project=project)
        self.seconds: dict[str, float] = defaultdict(float)

    def request(self, kind: Kind, operation: str, *args: Any, **message: Any) -> Any:
        start = time.perf_counter()
        precision = {True: " float64", False: " float32"}.get(message.get("wide"), "")  # type: ignore[arg-type]
        try:
            return super().request(kind, operation, *args, **message)
        finally:
            self.seconds[f"{kind} {operation}{precision}"] += time.perf_counter() - start


def timed(source: Path, code: str, pool: TimedPool) -> tuple[float, dict[str, float]]:
    """Seconds of one check, and those of its requests."""
    pool.seconds.clear()
    start = time.perf_counter()
    report = check_files(source, code, pool=pool)
    taken = time.perf_counter() - start
    for verdict in report.objects:
        if verdict.verdict is not VerdictKind.EQUIVALENT:
            raise SystemExit(f"{verdict.name}: {verdict.verdict}: {verdict.reason}")
    return taken, dict(pool.seconds)


Timed = tuple[float, dict[str, float]]


@contextlib.contextmanager
def new_home() -> Iterator[Path]:
    """A home folder with nothing in it."""
    names = ("HOME", "XDG_CACHE_HOME", "T2J_CACHE")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            os.environ.pop(name, None)
        os.environ["HOME"] = folder
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def cold_and_warm(
    device: str, repeats: int, source: Path | None = None, project: Path | None = None
) -> tuple[dict[str, Timed], str]:
    """The times of a first check in fresh workers and the best of some more, and the device of both sides.

    ``project`` keeps compiled programs, in the cache folder of the environment; without it there are none.
    """
    with tempfile.TemporaryDirectory() as folder:
        if source is None:
            source = Path(folder, "lenet.py")
            source.write_text(LENET, encoding="utf-8")
        code = convert_file(source, Options()).translation.code
        with TimedPool(device, project) as pool:
            cold = timed(source, code, pool)
            warm = min(timed(source, code, pool) for _ in range(repeats))
            where = pool.device_name + (f" ({pool.fallback})" if pool.fallback else "")
    return {"cold": cold, "warm": warm}, where


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Time a cold and a warm check.")
    parser.add_argument("--repeats", type=int, default=3, help="warm checks; the best counts (3)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--source", type=Path, help="a PyTorch file to check instead of a LeNet")
    options = parser.parse_args(arguments)
    with new_home() as home:
        cases = {"first on a new machine": home, "again, with the programs of the first": home, "no cache": None}
        for case, project in cases.items():
            times, where = cold_and_warm(options.device, options.repeats, options.source, project)
            kept = [one for one in home.rglob("*") if one.is_file()]
            size = sum(one.stat().st_size for one in kept) / 1024**2
            print(f"{case} (device: {where}; {len(kept)} files kept, {size:.1f} MB)")
            for name, (seconds, parts) in times.items():
                bar = f" (bar {BARS[name]:.0f} s)" if options.source is None else ""
                print(f"  {name}: {seconds:5.2f} s{bar}")
                rest = seconds - sum(parts.values())
                for what, part in sorted({**parts, "this process": rest}.items(), key=lambda item: -item[1]):
                    print(f"    {part:6.2f} s  {100 * part / seconds:4.0f} %  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
