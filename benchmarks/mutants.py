"""Whether the checker sees mistakes: mutants of right conversions, and right conversions under many seeds.

    python -m benchmarks.mutants [--per N] [--limit N] [--only NAME,...] [--jobs N] [--seed N] [--json FILE]
    python -m benchmarks.mutants --mends ...
    python -m benchmarks.mutants --innocents N

Every object of ``mutants_corpus`` is converted by the rules and checked; from each right conversion, ``--per`` mutants
are taken, spread over the operators of ``mutants_operators``. A mutant is caught if its verdict is ``different``, and
placed if the verdict's line is on the mutated statement. Mutants that compute the same (`mutants_equivalence`) are no
mistakes, and are listed apart. ``--mends`` makes the edit that a verdict names as its cause, and checks again: every
edit that is offered is to give an equivalent conversion. ``--innocents`` checks the right conversions again and again,
each time with another seed: none may be ``different``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.program.rewriting import ParsedText, SpanEdit
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, VerdictKind

from .mutants_equivalence import EXPLAINED, UNSEEN, same_computation
from .mutants_objects import Subject, subjects
from .mutants_operators import Mutant, mutants_of

PER = 17
CAUGHT, PLACED = 0.99, 0.95


@dataclass(frozen=True)
class Outcome:
    """The verdict on one text; ``operator`` is empty for a right conversion."""

    subject: str
    operator: str
    mutation: str
    line: int
    end_line: int
    verdict: str
    reason: str
    placed_at: int | None
    seconds: float
    no_mistake: str = ""
    """Why a mutant that is not caught computes the same."""
    fix: str = ""
    mended: str = ""
    """The edit that is the likely cause, and the verdict after it."""

    @property
    def caught(self) -> bool:
        return self.verdict == VerdictKind.DIFFERENT

    @property
    def placed(self) -> bool:
        return self.placed_at is not None and self.line <= self.placed_at <= self.end_line


def chosen(subject: Subject, per: int, seed: int) -> list[Mutant]:
    """Mutants of one object: each operator gives one in turn, in random order, until there are enough."""
    rng = random.Random(f"{seed} {subject}")
    by_operator: dict[str, list[Mutant]] = {}
    seen: set[str] = set()
    for mutant in mutants_of(subject.converted, subject.statements()):
        if mutant.text not in seen:
            seen.add(mutant.text)
            by_operator.setdefault(mutant.operator, []).append(mutant)
    for mutants in by_operator.values():
        rng.shuffle(mutants)
    order: list[Mutant] = []
    while any(by_operator.values()):
        names = [name for name, mutants in by_operator.items() if mutants]
        rng.shuffle(names)
        order += [by_operator[name].pop() for name in names]
    return order[:per]


class Bench:
    """Checks in one pair of workers, which remember what torch did."""

    def __init__(self, pool: Pool, mends: bool = False) -> None:
        self.pool = pool
        self.mends = mends
        self.recall = Recall()

    def check(self, subject: Subject, text: str, seed: int, initial: bool = True) -> ObjectVerdict:
        """The verdict on the object in a converted text."""
        report = check_files(
            subject.path, text, [subject.name], pool=self.pool, seed=seed, eager=False, timeout=60,
            recall=self.recall, initial=initial, causes=self.mends,
        )  # fmt: skip
        return report.objects[0]

    def outcome(self, subject: Subject, mutant: Mutant | None, seed: int) -> Outcome:
        """The verdict on a mutant, or on the right conversion."""
        start = time.monotonic()
        verdict = self.check(subject, mutant.text if mutant else subject.converted, seed)
        place = verdict.divergence.jax if verdict.divergence else None
        seconds, reason = time.monotonic() - start, ""
        if mutant is not None and verdict.verdict is VerdictKind.EQUIVALENT:
            reason = EXPLAINED.get((str(subject), f"{mutant.before} -> {mutant.after}"), "")
            reason = "the same jaxpr" if same_computation(subject, mutant.text) else reason
        return Outcome(
            str(subject),
            mutant.operator if mutant else "",
            f"{mutant.before} -> {mutant.after}" if mutant else "",
            mutant.line if mutant else 0,
            mutant.end_line if mutant else 0,
            verdict.verdict.value,
            verdict.reason or "",
            place.line if place else None,
            seconds,
            reason,
            *(self.mended(subject, mutant, verdict, seed) if mutant is not None else ()),
        )

    def mended(self, subject: Subject, mutant: Mutant, verdict: ObjectVerdict, seed: int) -> tuple[str, str]:
        """The edit that the verdict names, and the verdict after it."""
        fix = verdict.divergence.fix if verdict.divergence else None
        if fix is None:
            return "", ""
        text = ParsedText(mutant.text).applied(SpanEdit(fix.span, fix.new))
        return fix.title, self.check(subject, text or "", seed).verdict.value


Task = tuple[Subject, int, int, int, bool]
"""An object, mutants, checks of the right conversion, the first seed, and whether causes are tried."""


def run(task: Task) -> list[Outcome]:
    """One task, in workers of its process."""
    subject, per, innocents, seed, mends = task
    bench = _bench(mends)
    right = [bench.outcome(subject, None, seed + number) for number in range(innocents)]
    if any(o.verdict != VerdictKind.EQUIVALENT for o in right):
        return right
    return right + [bench.outcome(subject, mutant, seed) for mutant in chosen(subject, per, seed)]


_benches: list[Bench] = []


def _bench(mends: bool) -> Bench:
    """This process's workers, started on first use. They end when its pipes close."""
    if not _benches:
        pool = Pool(device="cpu")
        pool.start()
        _benches.append(Bench(pool, mends))
    return _benches[0]


def run_all(tasks: list[Task], jobs: int) -> Iterator[Outcome]:
    """All tasks, spread over processes."""
    with multiprocessing.get_context("spawn").Pool(jobs) as processes:
        for outcomes in processes.imap_unordered(run, tasks):
            yield from outcomes


def report(outcomes: Iterable[Outcome]) -> bool:
    """Prints the figures; whether they are good enough."""
    in_order = sorted(outcomes, key=lambda o: (o.subject, o.line, o.mutation))
    right, wrong = [o for o in in_order if not o.operator], [o for o in in_order if o.operator]
    accused = [o for o in right if o.verdict != VerdictKind.EQUIVALENT]
    print(
        f"right conversions: {len({o.subject for o in right})} objects, {len(right)} checks, {len(accused)} not seen as"
    )
    for o in accused:
        print(f"  {o.subject}: {o.verdict}: {o.reason}")
    if not wrong:
        return not accused
    offered = [o for o in wrong if o.fix]
    if offered:
        right_edits = [o for o in offered if o.mended == VerdictKind.EQUIVALENT]
        print(f"causes found: {len(offered)}, whose edit gives an equivalent conversion: {len(right_edits)}")
        for o in offered:
            if o.mended != VerdictKind.EQUIVALENT:
                print(f"NOT MENDED {o.subject} line {o.line}, {o.mutation}: {o.fix}: {o.mended}")
    same = [o for o in wrong if o.no_mistake]
    wrong = [o for o in wrong if not o.no_mistake]
    caught = [o for o in wrong if o.caught]
    placed = [o for o in caught if o.placed]
    print(f"mutants: {len(wrong)}, caught: {len(caught)} ({len(caught) / len(wrong):.2%})")
    print(f"placed on the mutated statement: {len(placed)} ({len(placed) / max(len(caught), 1):.2%} of caught)")
    totals, hits = Counter(o.operator for o in wrong), Counter(o.operator for o in caught)
    on = Counter(o.operator for o in placed)
    for name, count in sorted(totals.items()):
        print(f"  {name:20} {hits[name]:4} of {count:4} caught, {on[name]:4} placed")
    print(f"no mistakes, and left out above: {len(same)}")
    for o in same:
        print(f"  {_where(o)}: {o.no_mistake}")
    for o in wrong:
        if not o.caught:
            print(f"SURVIVED {_where(o)}: {o.verdict} {o.reason[:160]} {UNSEEN.get((o.subject, o.mutation), '')}")
    for o in caught:
        if not o.placed:
            print(f"MISPLACED {_where(o)}: at line {o.placed_at}: {o.reason[:160]}")
    seconds = sorted(o.seconds for o in wrong)
    print(f"seconds for a mutant: median {seconds[len(seconds) // 2]:.2f}, sum {sum(seconds):.0f}")
    return not accused and len(caught) >= CAUGHT * len(wrong) and len(placed) >= PLACED * len(caught)


def _where(o: Outcome) -> str:
    return f"{o.subject} line {o.line}, {o.operator}: {o.mutation}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--per", type=int, default=PER, help="mutants of each object")
    parser.add_argument("--limit", type=int, help="objects at most")
    parser.add_argument("--only", help="objects whose names hold one of these, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mends", action="store_true", help="look for causes, and check what their edits give")
    parser.add_argument("--innocents", type=int, metavar="N", help="N checks of right conversions, and no mutants")
    parser.add_argument("--json", type=Path, help="where to write every outcome, one a line")
    options = parser.parse_args()
    wanted = subjects(options.only)[: options.limit]
    if options.innocents:
        counts = [len(range(i, options.innocents, len(wanted))) for i in range(len(wanted))]
        tasks = [(s, 0, n, 1000 + options.seed, False) for s, n in zip(wanted, counts, strict=True) if n]
    else:
        tasks = [(s, options.per, 1, options.seed, options.mends) for s in wanted]
    outcomes: list[Outcome] = []
    with open(options.json or os.devnull, "w") as kept:
        for outcome in run_all(tasks, options.jobs):
            outcomes.append(outcome)
            print(json.dumps(asdict(outcome)), file=kept, flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)} checks, {outcome.subject:40}", end="", file=sys.stderr, flush=True)
    return 0 if report(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
