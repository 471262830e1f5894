"""How sharp written unit tests are after translation: the planted mistakes that they kill.

    python -m benchmarks.unit_tests [--per N] [--limit N] [--only NAME,...] [--every N] [--seed N] [--json FILE]

For every object of ``mutants_corpus`` (with ``--every N`` each Nth) tests are written, run on the PyTorch program,
translated by the rules, and run on the right conversion: all must agree there. Then they run on ``--per`` mutants of
it. A mutant is killed if a test fails on it. Mutants that compute the same (`mutants_equivalence`) are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.unit_tests.compare import Programs, compare_tests, on_conversion
from t2j_lsp.check.unit_tests.writer import write_tests
from t2j_lsp.contract import Options, Translation

from .mutants import chosen
from .mutants_equivalence import EXPLAINED, same_computation
from .mutants_objects import Subject, subjects

PER = 2
TIMEOUT = 300.0


@dataclass
class TestsOfObject:
    """What became of the tests of one object."""

    subject: str
    written: int = 0
    kept: int = 0
    translated: int = 0
    agree: int = 0
    remarks: list[str] = field(default_factory=list)
    """Why there are none, and tests that differ on the right conversion."""
    mutants: dict[str, list[str]] = field(default_factory=dict)
    """The tests that kill each mutant, by operator and mutation."""
    same: list[str] = field(default_factory=list)
    """Mutants that no test kills and that compute the same."""
    seconds: float = 0.0


def measured(pool: Pool, subject: Subject, per: int, seed: int) -> TestsOfObject:
    """The tests of one object, on the right conversion and on mutants of it."""
    result, start = TestsOfObject(str(subject)), time.monotonic()
    tests = subject.path.with_name(f"test_{subject.path.stem}.py")
    written = write_tests(pool, Slicer(subject.path), tests, [subject.name], TIMEOUT)
    result.remarks = [why for _, why in written.skipped]
    result.written = written.count
    if written.code:
        programs = Programs(subject.path, subject.converted)
        report = compare_tests(pool, programs, tests, written.code, _translated, TIMEOUT)
        result.kept, result.translated, result.agree = report.kept, report.translated, len(report.agree)
        result.remarks += [str(one) for one in report.differ] + [f"{n}: {why}" for n, why in report.untranslated]
        for mutant in chosen(subject, per, seed) if report.agree else []:
            mutated = Programs(subject.path, mutant.text)
            _, failed = on_conversion(pool, mutated, tests, report.jax_code, report.agree, TIMEOUT)
            name = f"line {mutant.line}, {mutant.operator}: {mutant.before} -> {mutant.after}"
            explained = (str(subject), f"{mutant.before} -> {mutant.after}") in EXPLAINED
            if not failed and (explained or same_computation(subject, mutant.text)):
                result.same.append(name)
            else:
                result.mutants[name] = [one.name for one in failed]
    result.seconds = time.monotonic() - start
    return result


def _translated(path: Path, text: str) -> Translation:
    return convert_file(path, Options(), text.encode()).translation


def report(all_found: list[TestsOfObject]) -> bool:
    """Prints the figures; whether all tests agree with the right conversions."""
    tested = [f for f in all_found if f.agree]
    counts = {name: sum(getattr(f, name) for f in all_found) for name in ("written", "kept", "translated", "agree")}
    print(f"objects: {len(all_found)}, with tests: {len(tested)}")
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    mutants = {(f.subject, name): killers for f in all_found for name, killers in f.mutants.items()}
    killed = [killers for killers in mutants.values() if killers]
    print(f"mutants: {len(mutants)}, killed: {len(killed)} ({len(killed) / max(len(mutants), 1):.1%})")
    operators = Counter(name.split(": ")[0].partition(", ")[2] for _, name in mutants)
    hits = Counter(name.split(": ")[0].partition(", ")[2] for (_, name), killers in mutants.items() if killers)
    for name, count in sorted(operators.items()):
        print(f"  {name:20} {hits[name]:4} of {count:4}")
    kinds = Counter(_kind(test) for killers in killed for test in {_kind(k): k for k in killers}.values())
    print("killed by a test of: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    print(f"no mistakes, and left out above: {sum(len(f.same) for f in all_found)}")
    for f in all_found:
        for line in f.remarks:
            print(f"{f.subject}: {line}")
    for (subject, name), killers in mutants.items():
        if not killers:
            print(f"SURVIVED {subject} {name}")
    print(f"seconds: {sum(f.seconds for f in all_found):.0f}")
    return bool(counts["agree"] == counts["translated"])


def _kind(test: str) -> str:
    """What a test is about, by its name: ``test_net_state_round_trip`` is about ``state_round_trip``."""
    kinds = ("state_round_trip", "repeats_in_evaluation", "gradients", "training", "output", "state")
    return next((kind for kind in kinds if test.endswith(kind)), "other")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--per", type=int, default=PER, help=f"mutants of each object (default: {PER})")
    parser.add_argument("--limit", type=int, help="objects at most")
    parser.add_argument("--only", help="objects whose names hold one of these, separated by commas")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth object")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to write what was found, one object a line")
    options = parser.parse_args()
    results: list[TestsOfObject] = []
    with open(options.json or os.devnull, "w") as kept, Pool(device="cpu", quick=False) as pool:
        pool.start()
        for subject in subjects(options.only)[:: options.every][: options.limit]:
            results.append(measured(pool, subject, options.per, options.seed))
            print(json.dumps(asdict(results[-1])), file=kept, flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(results)} objects, {subject!s:40}", end="", file=sys.stderr, flush=True)
    return 0 if report(results) else 1


if __name__ == "__main__":
    sys.exit(main())
