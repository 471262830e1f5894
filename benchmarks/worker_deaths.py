"""Kills workers at random moments of checks, and looks at what the verdicts, the processes and the memory are then.

    python -m benchmarks.worker_deaths [--deaths 200] [--seed N]

Checks of a right and of a wrong conversion run one after the other. A thread picks a process of one of the two workers
(the worker, the init of its namespace, its supervisor) and a signal, and sends it somewhere between the start of a
check and its end. Printed are: verdicts by case (a right conversion must never be `different`, a wrong one never
`equivalent`), the reasons that were given, processes that outlive the pool (there must be none), and the resident
memory of this process, which stands for the server's, over the run.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.processes import TAG, resident
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import VerdictKind

TORCH = """
import torch
import torch.nn as nn
import torch.nn.functional as F

# t2j: x=f32[3, 5]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 7)
        self.out = nn.Linear(7, 2)

    def forward(self, x):
        return self.out(F.gelu(self.hidden(x)))
"""
RIGHT = """
import jax
from flax import nnx

class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(5, 7, rngs=rngs)
        self.out = nnx.Linear(7, 2, rngs=rngs)

    def __call__(self, x):
        return self.out(jax.nn.gelu(self.hidden(x), approximate=False))
"""
CASES = {"right": RIGHT, "wrong": RIGHT.replace(", approximate=False", "")}
ALLOWED = {
    "right": {VerdictKind.EQUIVALENT, VerdictKind.UNCHECKED},
    "wrong": {VerdictKind.DIFFERENT, VerdictKind.UNCHECKED},
}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGSTOP)
TIMEOUT = 30.0
"""Seconds after which a stopped worker counts as hung."""


class Killer:
    """Sends signals to the processes of a pool's workers, and remembers all that it saw."""

    def __init__(self, pool: Pool, seed: int) -> None:
        self.pool = pool
        self.random = random.Random(seed)
        self.seen: set[str] = set()
        self.sent: Counter[str] = Counter()

    def strike(self, longest: float, done: threading.Event) -> None:
        """Waits for a random part of ``longest`` seconds, then signals one process, if there is one by then."""
        if done.wait(self.random.uniform(0, longest)):
            return
        kind = self.random.choice(("torch", "jax"))
        pids = self.pool.processes(kind)
        self.seen |= {tag for pid in pids if (tag := tag_of(pid))}
        if pids:
            number = self.random.choice(SIGNALS)
            try:
                os.kill(self.random.choice(pids), number)
                self.sent[f"{kind} {number.name}"] += 1
            except ProcessLookupError:
                return


def tag_of(pid: int) -> str | None:
    """The tag in a process's environment by which its worker is known."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((v.decode() for v in variables if v.startswith(TAG.encode() + b"=")), None)


def left_over(tags: set[str]) -> list[int]:
    """Processes that still carry one of the tags."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if tag_of(pid) in tags]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Kill workers during checks.")
    parser.add_argument("--deaths", type=int, default=200, help="signals to send (200)")
    parser.add_argument("--seed", type=int, default=0, help="of moments, processes and signals")
    options = parser.parse_args(arguments)
    verdicts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    wrong: list[str] = []
    memory: list[int] = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "net.py")
        source.write_text(TORCH)
        with Pool(device="cpu") as pool:
            killer = Killer(pool, options.seed)
            check_files(source, RIGHT, pool=pool, timeout=TIMEOUT, initial=False)
            taken = 1.0
            while killer.sent.total() < options.deaths:
                name = "right" if len(memory) % 2 else "wrong"
                done = threading.Event()
                thread = threading.Thread(target=killer.strike, args=(taken, done))
                thread.start()
                began = time.perf_counter()
                verdict = check_files(source, CASES[name], pool=pool, timeout=TIMEOUT, initial=False).objects[0]
                taken = max(0.5, min(time.perf_counter() - began, 10.0))
                done.set()
                thread.join()
                verdicts[name, str(verdict.verdict)] += 1
                if verdict.verdict is VerdictKind.UNCHECKED:
                    reasons[verdict.reason or "no reason"] += 1
                if verdict.verdict not in ALLOWED[name]:
                    wrong.append(f"{name}: {verdict.verdict}: {verdict.reason}")
                memory.append(resident([os.getpid()]))
        orphans = left_over(killer.seen)
    for (name, verdict_name), count in sorted(verdicts.items()):
        print(f"{name} conversion: {verdict_name:11} {count:4}")
    for reason, count in reasons.most_common():
        print(f"  {count:4} {reason}")
    print(f"signals: {killer.sent.total()} ({', '.join(f'{n} {s}' for s, n in sorted(killer.sent.items()))})")
    tenth = max(1, len(memory) // 10)
    first, last = max(memory[:tenth]), max(memory[-tenth:])
    print(f"wrong verdicts: {len(wrong)}; processes left: {len(orphans)}")
    print(f"memory: {first / 1e6:.1f} MB in the first tenth of the checks, {last / 1e6:.1f} MB in the last")
    print(f"{len(memory)} checks, {time.perf_counter() - start:.0f} s")
    for text in wrong:
        print(text)
    return 1 if wrong or orphans else 0


if __name__ == "__main__":
    sys.exit(main())
