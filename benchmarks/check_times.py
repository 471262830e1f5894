"""How long a check takes, cold and warm, beside the design's numbers, and what dominates it.

    python -m benchmarks.check_times [--repeats 3] [--device gpu]

A LeNet is converted and checked in all stages: first with fresh workers, which have to import their frameworks, then
with the same workers again. The table gives the seconds of every request to a worker; the rest is this process's. XLA's
programs are kept on disk between runs (``T2J_CACHE``); a temporary folder is used here, so that the first check
compiles all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file
from t2j_lsp.check.pool import Kind, Pool
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

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device=device)
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
    (verdict,) = check_files(source, code, pool=pool).objects
    taken = time.perf_counter() - start
    if verdict.verdict is not VerdictKind.EQUIVALENT:
        raise SystemExit(f"{verdict.verdict}: {verdict.reason}")
    return taken, dict(pool.seconds)


Timed = tuple[float, dict[str, float]]


def cold_and_warm(device: str, repeats: int) -> tuple[dict[str, Timed], str]:
    """The times of a first check in fresh workers and the best of some more, and the device of both sides."""
    before = os.environ.get("T2J_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["T2J_CACHE"] = folder
        try:
            source = Path(folder, "lenet.py")
            source.write_text(LENET, encoding="utf-8")
            code = convert_file(source, Options()).translation.code
            with TimedPool(device) as pool:
                cold = timed(source, code, pool)
                warm = min(timed(source, code, pool) for _ in range(repeats))
                where = pool.device_name + (f" ({pool.fallback})" if pool.fallback else "")
        finally:
            os.environ.pop("T2J_CACHE")
            if before is not None:
                os.environ["T2J_CACHE"] = before
    return {"cold": cold, "warm": warm}, where


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Time a cold and a warm check.")
    parser.add_argument("--repeats", type=int, default=3, help="warm checks; the best counts (3)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args(arguments)
    times, where = cold_and_warm(options.device, options.repeats)
    print(f"device: {where}")
    for name, (seconds, parts) in times.items():
        print(f"{name}: {seconds:5.2f} s (bar {BARS[name]:.0f} s)")
        rest = seconds - sum(parts.values())
        for what, part in sorted({**parts, "this process": rest}.items(), key=lambda item: -item[1]):
            print(f"  {part:6.2f} s  {100 * part / seconds:4.0f} %  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
