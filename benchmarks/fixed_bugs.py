"""Whether every fixed bug holds: the faulty code fails as it is said to, the fixed code is equivalent to the source.

    python -m benchmarks.fixed_bugs [EXAMPLE ...] [--sample N] [--seed N] [--jobs N]
    python -m benchmarks.fixed_bugs --record [EXAMPLE ...]
    python -m benchmarks.fixed_bugs --terms

Runs the examples of ``retrieval/fixed_bugs.jsonl`` (all, those named, or a sample) and prints what does not hold, the
counts by category, and the time per pair; exit code 1 where something does not hold. ``--record`` reads the pages in
``retrieval/programs``, runs them, and writes ``fixed_bugs.jsonl`` with the messages that appeared. Only pages that
changed since are run, unless they are named. It also writes ``terms.jsonl``, the words that pairs are found by, which
``--terms`` does alone.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from t2j_lsp.assist.replay import Replayed, replay
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict
from t2j_lsp.fixes.record import Example, FixedBug, Verification, to_jsonl
from t2j_lsp.retrieval import dataset, terms
from t2j_lsp.retrieval.authoring import PageError, read_page

HOME = Path(__file__).resolve().parents[1] / "retrieval"
PAGES, DATA = HOME / "programs", HOME / "fixed_bugs.jsonl"
PACKAGES = ("torch", "jax", "flax", "optax")


class CheckJudge:
    """Judges by the project's own check, in one pair of workers that remembers what torch did."""

    def __init__(self, pool: Pool, folder: Path) -> None:
        self.pool, self.folder, self.recall = pool, folder, Recall()

    def __call__(self, source: str, candidate: str, name: str) -> ObjectVerdict:
        path, converted = self.folder / "source.py", self.folder / "converted.py"
        path.write_text(source)
        converted.write_text(candidate)
        options = {"pool": self.pool, "recall": self.recall, "timeout": 60, "causes": False, "initial": False}
        return check_files(path, converted, [name], **options).objects[0]


@contextlib.contextmanager
def check_judge() -> Iterator[CheckJudge]:
    """Workers and a folder of their own, as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="t2j-bugs-") as folder, Pool(device="cpu") as pool:
        pool.start()
        yield CheckJudge(pool, Path(folder))


def _run(task: tuple[Example, tuple[str, ...]]) -> list[Replayed]:
    example, only = task
    if not _judges:
        _judges.append(_held.enter_context(check_judge()))
    return list(replay(example, _judges[0], only))


_held = contextlib.ExitStack()
_judges: list[CheckJudge] = []


def run_all(
    tasks: Sequence[tuple[Example, tuple[str, ...]]], jobs: int, shown: Callable[[Example, list[Replayed]], None]
) -> dict[str, list[Replayed]]:
    """Replays on as many processes as ``jobs``; what each example showed, by its id."""
    pages = {}
    with multiprocessing.get_context("spawn").Pool(jobs) as processes:
        for (example, _), rows in zip(tasks, processes.imap(_run, tasks), strict=True):
            pages[example.example_id] = rows
            shown(example, rows)
    return pages


def show(example: Example, rows: list[Replayed]) -> None:
    bad = [row for row in rows if row.problem]
    seconds = sum(row.seconds for row in rows)
    print(
        f"{example.example_id}: {len(rows) - 1} bugs, {seconds:.1f} s{'' if not bad else ', NOT AS STATED'}", flush=True
    )
    for row in bad:
        print(f"  {row.id}: {row.problem}", flush=True)


def recorded(example: Example, rows: Sequence[Replayed]) -> Example:
    """The example with what running it showed. Bugs that did not fail are left out."""
    shown = {row.id: row for row in rows if row.failure is not None and not row.problem}
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    bugs = []
    for pair in example.pairs:
        if row := shown.get(pair.id):
            assert row.failure is not None
            seen = Verification(row.failure.outcome, row.failure.lines, versions, round(row.seconds, 2))
            bugs.append(replace(pair.bug, error=row.failure.message, verification=seen))
    return example.with_errors(bugs)


def programs(examples: Sequence[Example]) -> list[Example]:
    """One example for each program, with the errors of all its drafts."""
    by_id: dict[str, Example] = {}
    for example in examples:
        first = by_id.setdefault(example.program, example.with_errors(()))
        by_id[example.program] = first.with_errors([*first.errors, *example.errors])
    return list(by_id.values())


def bare(example: Example) -> Example:
    """What its author wrote of a program, its errors in the order of their names."""
    errors = sorted(example.errors, key=lambda bug: bug.root_cause)
    return example.with_errors(replace(bug, error="", verification=None) for bug in errors)


def record(names: Sequence[str], jobs: int) -> bool:
    """Runs pages that changed and writes the data; whether all of them hold."""
    known = {e.program: e for e in programs(dataset() if DATA.exists() else ())}
    pages, good = [], True
    for path in sorted(PAGES.glob("*.md")):
        try:
            pages.append(read_page(path))
        except PageError as error:
            print(error)
            good = False
    changed = [p for p in pages if p.program not in known or bare(known[p.program]) != bare(p)]
    todo = [p for p in pages if p.program in names] if names else changed
    verified = run_all([(page, ()) for page in todo], jobs, show)
    for page in todo:
        rows = verified[page.example_id]
        good &= not any(row.problem for row in rows)
        known[page.program] = recorded(page, rows)
    kept = [known[p.program] for p in pages if p.program in known]
    DATA.write_text(to_jsonl(draft for program in kept for draft in program.drafts()), encoding="utf-8")
    return good


def write_terms() -> None:
    text = terms.to_lines(pair for example in dataset() for pair in example.pairs)
    (HOME / terms.FILE).write_text(text, encoding="utf-8")


def summary(examples: Sequence[Example], bad: int, seconds: float) -> None:
    bugs: list[FixedBug] = [bug for example in examples for bug in example.errors]
    outcomes = Counter(bug.verification.outcome for bug in bugs if bug.verification)
    programs, causes = len({e.program for e in examples}), len({b.root_cause for b in bugs})
    print(f"{len(bugs)} fixed bugs in {programs} programs, {causes} root causes")
    print("as stated:", len(bugs) - bad, "; not:", bad, f"; {seconds / max(len(bugs), 1):.2f} s a bug")
    print("outcomes:", ", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    for (category, sub), count in sorted(Counter((b.category, b.sub_category) for b in bugs).items()):
        print(f"  {category:26} {sub:26} {count:4}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="EXAMPLE")
    parser.add_argument("--record", action="store_true", help="run the pages that changed and write the data")
    parser.add_argument("--terms", action="store_true", help="write the words that pairs are found by, and end")
    parser.add_argument("--sample", type=int, metavar="N", help="as many bugs, chosen by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.record:
        good = record(arguments.names, arguments.jobs)
        dataset.cache_clear()
        write_terms()
        summary(dataset(), 0, sum(b.verification.seconds for e in dataset() for b in e.errors if b.verification))
        return 0 if good else 1
    if arguments.terms:
        write_terms()
        return 0
    examples = [e for e in programs(dataset()) if not arguments.names or e.program in arguments.names]
    pairs = [pair for example in examples for pair in example.pairs]
    if arguments.sample:
        pairs = random.Random(arguments.seed).sample(pairs, min(arguments.sample, len(pairs)))
    only = {pair.id for pair in pairs}
    chosen = [e.with_errors(p.bug for p in e.pairs if p.id in only) for e in examples]
    chosen = [e for e in chosen if e.errors]
    start = time.monotonic()
    verified = run_all([(e, ()) for e in chosen], arguments.jobs, show)
    bad = sum(bool(row.problem) for rows in verified.values() for row in rows)
    summary(chosen, bad, time.monotonic() - start)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
