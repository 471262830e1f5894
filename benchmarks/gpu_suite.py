"""The checker on a GPU: everything in one run, with its figures.

    python -m benchmarks.gpu_suite [--parts NAME,...] [--objects N] [--share K/N] [--wrong N] [--wheel PATH]
    python -m benchmarks.gpu_suite --dry-run

In order: the card as torch and as JAX name it; float32 products on both sides, which TF32 would show in; the memory
that both hold while they run, and a check while either holds most of its share; right conversions and planted mistakes
of `mutants_corpus`, each verdict counted by device; torchvision's families, where its sources are found; check times;
the tests in ``tests/check`` with both workers on the card. ``--parts`` takes some of these, ``--share 0/3`` each third
right conversion, so that several processes share a card with many cores beside it.

Where there is no GPU, one line says why and nothing is run. ``--dry-run`` goes the same way on the CPU and says so in
every heading; its figures say nothing about a GPU.

Exit status: 0 all figures hold their bars; 1 one does not; 3 there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.processes import resident
from t2j_lsp.check.process.worker import Kind, RemoteError, WorkerError
from t2j_lsp.contract import VerdictKind

from . import check_times, torchvision_verdicts
from .mutants import CAUGHT, Bench, Outcome, chosen
from .mutants_objects import subjects
from .torchvision_sources import SourcesNotFound, find_sources

NO_GPU = 3
KINDS: tuple[Kind, ...] = ("torch", "jax")
PARTS = ("card", "precision", "memory", "verdicts", "peaks", "torchvision", "times", "tests")
EXACT = 1e-6
"""A float32 product of these operands is exact; in TF32 its error is above 1e-4."""
AT_REST = 0.10
"""Of the card's memory, what XLA may hold before it has run a model."""
MOST = 0.85
"""Of its share, what one framework holds while the other is checked against it."""
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Suite:
    """One run: the workers, and what did not hold."""

    pool: Pool
    dry: bool
    failed: list[str] = field(default_factory=list)
    peak: dict[str, int] = field(default_factory=dict)

    @property
    def device(self) -> str:
        return f"{self.pool.device_name}{', a dry run: no figure of a GPU' if self.dry else ''}"

    @contextmanager
    def section(self, title: str) -> Iterator[None]:
        """A heading that names the device; a worker's failure is a failed bar, and the rest goes on."""
        print()
        print(f"{title} [{self.device}]", flush=True)
        start = time.perf_counter()
        try:
            yield
        except (WorkerError, RemoteError) as error:
            self.bar(title, False, str(error))
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)

    def bar(self, what: str, holds: bool, shown: str) -> None:
        print(f"  {'ok    ' if holds else 'FAILED'} {what}: {shown}", flush=True)
        if not holds:
            self.failed.append(what)

    def ask(self, kind: Kind, operation: str, **message: object) -> dict[str, float]:
        answer: dict[str, float] = self.pool.request(kind, operation, 120.0, **message)
        return answer

    def measure(self) -> None:
        """Takes down what both sides hold at this moment, both alive."""
        for kind in KINDS:
            usage = self.ask(kind, "memory")
            self._most(f"{kind} on the card", int(usage.get("peak", 0)))
            self._most(f"{kind} in main memory", resident(self.pool.processes(kind)))
            if "total" in usage:
                self._most("all of the card", int(usage["total"] - usage["free"]))

    def _most(self, name: str, count: int) -> None:
        if count:
            self.peak[name] = max(self.peak.get(name, 0), count)


def missing_gpu() -> str | None:
    """Why there is no GPU for both frameworks here; None where there is one."""
    with Pool(device="gpu") as pool:
        pool.request("torch", "memory", 120.0)
        return pool.fallback


def cards(suite: Suite) -> None:
    """What both frameworks call the card."""
    sides = [suite.pool.greetings[kind] for kind in KINDS]
    for greeting in sides:
        print(f"  {greeting.framework}: {greeting.device}")
    suite.bar("the same card", len({greeting.device for greeting in sides}) == 1, suite.pool.device_name)


def precision(suite: Suite) -> None:
    """float32 products of matrices and convolutions on both sides."""
    for kind in KINDS:
        for what, error in suite.ask(kind, "precision").items():
            suite.bar(f"{kind} {what} in float32", error < EXACT, f"relative error {error:.1e} (below {EXACT:.0e})")


def memory(suite: Suite, bench: Bench) -> None:
    """XLA's memory at rest, both shares, and a check while one side holds most of its share."""
    torch, jax = suite.ask("torch", "memory"), suite.ask("jax", "memory")
    if not torch:
        suite.measure()
        for name, count in suite.peak.items():
            print(f"  {name}: {count / 2**20:.0f} MB")
        return
    total = torch["total"]
    share = jax["used"] / total
    suite.bar("XLA does not reserve the card", share < AT_REST, f"{share:.1%} of the card at rest")
    together = (torch["limit"] + jax["limit"]) / total
    suite.bar("both shares fit", together < 0.95, f"{together:.0%} of {total / 2**30:.1f} GB")
    subject = subjects("conv.ConvBlock")[0]
    for kind in KINDS:
        held = suite.ask(kind, "memory", hold=MOST)
        verdict = bench.check(subject, subject.converted, 0)
        suite.bar(
            f"a check while {kind} holds {held['used'] / 2**30:.1f} GB",
            verdict.verdict is VerdictKind.EQUIVALENT,
            f"{verdict.verdict} on {suite.pool.device_name}",
        )
        suite.measure()
        suite.ask(kind, "memory", hold=0)


def verdicts(suite: Suite, bench: Bench, objects: slice, wrong: int) -> None:
    """Right conversions, and planted mistakes of each: how many verdicts of which kind, on which device."""
    right: Counter[tuple[str, str]] = Counter()
    outcomes: list[Outcome] = []
    seconds: list[float] = []
    for subject in subjects()[objects]:
        outcome = bench.outcome(subject, None, 0)
        right[outcome.verdict, suite.pool.device_name] += 1
        seconds.append(outcome.seconds)
        if outcome.verdict != VerdictKind.EQUIVALENT:
            print(f"  right, and not seen as such: {subject}: {outcome.verdict}: {outcome.reason[:200]}")
            continue
        outcomes += [bench.outcome(subject, mutant, 0) for mutant in chosen(subject, wrong, 0)]
        suite.measure()
    total, good = sum(right.values()), sum(n for (v, _), n in right.items() if v == VerdictKind.EQUIVALENT)
    suite.bar("right conversions", good == total, _counted(right))
    mistakes = [o for o in outcomes if not o.no_mistake]
    caught = [o for o in mistakes if o.caught]
    for o in mistakes:
        if not o.caught:
            print(f"  not caught: {o.subject} line {o.line}: {o.mutation}: {o.verdict} {o.reason[:160]}")
    counts = Counter((o.verdict, suite.pool.device_name) for o in mistakes)
    suite.bar("planted mistakes", len(caught) >= CAUGHT * len(mistakes), _counted(counts))
    placed = sum(o.placed for o in caught)
    print(f"  placed on the mutated statement: {placed} of {len(caught)}; mutants that are no mistakes: "
          f"{len(outcomes) - len(mistakes)}")  # fmt: skip
    print(f"  seconds for a right conversion: median {sorted(seconds)[len(seconds) // 2]:.2f}, most {max(seconds):.2f}")


def _counted(counts: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"{n} {verdict} on {device}" for (verdict, device), n in counts.most_common()) or "none"


def peaks(suite: Suite) -> None:
    """The most memory that both sides held at one of the moments above."""
    for name, count in sorted(suite.peak.items()):
        print(f"  most of {name}: {count / 2**20:.0f} MB")


def families(suite: Suite, wheel: Path | None) -> None:
    """The verdicts on torchvision's families in all stages."""
    try:
        sources = find_sources(wheel)
    except SourcesNotFound as error:
        print(f"  not run: {error}")
        return
    equivalent = torchvision_verdicts.report(sources, "", 0, suite.pool)
    suite.bar("torchvision's families", equivalent, suite.device)


def times(suite: Suite) -> None:
    """Cold and warm check times of a LeNet, beside the design's numbers for a CPU."""
    measured, where = check_times.cold_and_warm(suite.pool.device, 3)
    for name, (seconds, parts) in measured.items():
        slowest = max(parts, key=lambda part: parts[part])
        bar = f"bar on a CPU {check_times.BARS[name]:.0f} s"
        print(f"  {name}: {seconds:.2f} s on {where} ({bar}), most of it {slowest}")


def tests(suite: Suite) -> None:
    """The tests of the checker, with its workers on the device."""
    variables = {**os.environ, "T2J_TEST_DEVICE": suite.pool.device, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "tests/check"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print(f"  {line}")
    suite.bar("tests/check", done.returncode == 0, lines[-1] if lines else done.stderr[-300:])


def share_of(text: str) -> tuple[int, int]:
    """The two numbers of ``K/N``.

    Raises:
        ValueError: They aren't two, or K is not below N.
    """
    first, step = map(int, text.split("/"))
    if not 0 <= first < step:
        raise ValueError(text)
    return first, step


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Run the whole check suite on a GPU and print its figures.")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)} (all)")
    parser.add_argument("--objects", type=int, help="right conversions at most (all)")
    parser.add_argument("--share", type=share_of, default=(0, 1), metavar="K/N", help="each N-th of them, from K on")
    parser.add_argument("--wrong", type=int, default=2, help="planted mistakes in each (2)")
    parser.add_argument("--wheel", type=Path, help="a torchvision wheel, or a folder that holds torchvision/")
    parser.add_argument("--dry-run", action="store_true", help="go the same way on the CPU, to see that it works")
    options = parser.parse_args(arguments)
    chosen_parts = options.parts.split(",")
    if unknown := set(chosen_parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    os.environ["JAX_PLATFORMS"] = "cpu"  # of this process: only the workers are to take the card's memory
    missing = None if options.dry_run else missing_gpu()
    if missing is not None:
        print(f"no GPU for both frameworks: {missing}. Nothing was run; --dry-run goes the same way on the CPU.")
        return NO_GPU
    with Pool(device="cpu" if options.dry_run else "gpu") as pool:
        suite, bench = Suite(pool, options.dry_run), Bench(pool)
        for kind in KINDS:
            suite.ask(kind, "memory")
        first, step = options.share
        parts: dict[str, tuple[str, Callable[[], None]]] = {
            "card": ("The card", lambda: cards(suite)),
            "precision": ("Precision", lambda: precision(suite)),
            "memory": ("Memory", lambda: memory(suite, bench)),
            "verdicts": (
                "Verdicts",
                lambda: verdicts(suite, bench, slice(first, options.objects, step), options.wrong),
            ),
            "peaks": ("Memory while they ran", lambda: peaks(suite)),
            "torchvision": ("torchvision's families", lambda: families(suite, options.wheel)),
            "times": ("Check times", lambda: times(suite)),
            "tests": ("Tests of the checker", lambda: tests(suite)),
        }
        for name in chosen_parts:
            title, part = parts[name]
            with suite.section(title):
                part()
        fallen = suite.pool.fallback
        if fallen is not None:
            suite.bar("every verdict is the GPU's", False, fallen)
    print()
    print(f"{len(suite.failed)} bars failed: {', '.join(suite.failed)}" if suite.failed else "all bars hold")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
