"""How long verdicts take on torchvision's families and on modules with three-dimensional convolutions.

    python -m benchmarks.verdict_times [--only R3D18,densenet] [--wheel PATH] [--timeout 120] [--json FILE]

The 17 families are those of `torchvision_cases`, the modules the classes of ``volumes_corpus`` that no other class of
it uses. Each is converted and checked in all stages, as `t2j check` does. One line each: the verdict, seconds, seconds
of processor time of both workers, and what was left out. Workers stay warm, and no compiled program is kept from an
earlier run. The exit status is 0 if each has a verdict, equivalent or different, within the bar.

On a machine that does other work, too, give a longer ``--timeout``, so that nothing is left out, and look at the
processor time: a check seldom uses two cores at once.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, Options, VerdictKind

from .torchvision_cases import CASES
from .torchvision_sources import PACKAGE, SourcesNotFound, find_sources
from .torchvision_verdicts import checked as torchvision_verdict

CORPUS = Path(__file__).parent / "volumes_corpus"
BAR = 60.0
"""Seconds for a verdict, on two cores."""


@dataclass(frozen=True)
class Row:
    """What one module took."""

    name: str
    verdict: str
    seconds: float
    processor: float
    reason: str

    def __str__(self) -> str:
        return f"{self.name:34} {self.verdict:11} {self.seconds:6.1f} s {self.processor:6.1f} s  {self.reason}"


def modules() -> Iterator[tuple[Path, str]]:
    """The classes of the corpus that no other class of their file uses."""
    for path in sorted(CORPUS.glob("*.py")):
        classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
        used = {n.id for c in classes for n in ast.walk(c) if isinstance(n, ast.Name) and n.id != c.name}
        yield from ((path, c.name) for c in classes if c.name not in used)


def own_verdict(path: Path, name: str, pool: Pool, timeout: float) -> ObjectVerdict:
    """The verdict on one class of the corpus."""
    translation = convert_file(path, Options()).translation
    code, lines = translation.code, translation.source_map
    return check_files(path, code, [name], pool=pool, source_map=lines, timeout=timeout).objects[0]


def processor_time(pool: Pool) -> float:
    """Seconds of user and system time of the workers that run now, with their threads."""
    ticks = 0
    for pid in [*pool.processes("torch"), *pool.processes("jax")]:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It ended in the meantime, or the system has no /proc.
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(name: str, check: Callable[[], ObjectVerdict], pool: Pool) -> Row:
    """One check, timed."""
    before, start = processor_time(pool), time.perf_counter()
    verdict = check()
    seconds, processor = time.perf_counter() - start, processor_time(pool)
    # A worker that was replaced starts from 0 again.
    processor -= before if processor >= before else 0.0
    stages = (verdict.stages.get(stage) for stage in ("numeric", "behavioral"))
    said = [verdict.reason, *(s.reason for s in stages if s is not None)]
    return Row(name, str(verdict.verdict), seconds, processor, "; ".join(filter(None, dict.fromkeys(said)))[:300])


def rows(pool: Pool, only: set[str], wheel: Path | None, timeout: float) -> Iterator[Row]:
    """All rows, the modules of the corpus first."""
    for path, name in modules():
        if not only or name in only:
            yield measured(name, partial(own_verdict, path, name, pool, timeout), pool)
    cases = [case for case in CASES if not only or case.family in only]
    if not cases:
        return
    sources = find_sources(wheel)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        shutil.copytree(sources / PACKAGE, root / PACKAGE, ignore=shutil.ignore_patterns("*.so*", "*.pyc", "*.pyd"))
        for case in cases:
            yield measured(case.label, partial(torchvision_verdict, case, root, pool, 0, timeout), pool)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Time the verdicts on deep and three-dimensional modules.")
    parser.add_argument("--only", default="", help="modules and families, with commas between them")
    parser.add_argument("--wheel", type=Path, help="a torchvision wheel, or a folder that holds torchvision/")
    parser.add_argument("--timeout", type=float, default=120.0, help="as of t2j check (120)")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    options = parser.parse_args(arguments)
    measured: list[Row] = []
    print(f"{'module':34} {'verdict':11} {'time':>8} {'processor':>8}  what was left out, and reasons")
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["T2J_CACHE"] = folder
            with Pool(device="cpu") as pool:
                pool.start()
                only = {name for name in options.only.split(",") if name}
                for row in rows(pool, only, options.wheel, options.timeout):
                    measured.append(row)
                    print(row, flush=True)
    except SourcesNotFound as error:
        parser.error(str(error))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in measured], indent=1), encoding="utf-8")
    decided = [r for r in measured if r.verdict != VerdictKind.UNCHECKED]
    in_time = [r for r in decided if r.seconds <= BAR]
    verdicts = ", ".join(f"{n} {v}" for v, n in Counter(r.verdict for r in measured).most_common())
    longest = max((r.seconds for r in measured), default=0.0)
    print(f"{len(in_time)} of {len(measured)} have a verdict within {BAR:.0f} s; {verdicts}; longest {longest:.0f} s")
    return 0 if len(in_time) == len(measured) else 1


if __name__ == "__main__":
    sys.exit(main())
