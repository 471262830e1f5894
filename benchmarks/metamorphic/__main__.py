"""Changes of a PyTorch source that change nothing must not change what its conversion is.

    python -m benchmarks.metamorphic [--programs] [--torchvision PATH] [--vit-pytorch PATH] [--only NAME]
                                     [--changes A,B] [--pairs N] [--checks N] [--seed N] [--jobs N] [--out FILE]

Every program is changed in every way of `changes`, alone and in ``--pairs`` random pairs, and converted. A changed
program fails if it has a gap where the original has none, if an object of it is not `equivalent` where the original's
is, or if the converter crashes. Where an object is converted to the same text as the original's, but for names that
the change renamed, the original's verdict stands for it (`same text`). Of those that are converted otherwise,
``--checks`` programs of each change, drawn by the seed, are checked once all are converted. What the changes claim is
held by ``tests/test_metamorphic.py``, which runs changed programs in PyTorch. With ``--programs``, training programs
are changed, and instead of objects the whole is run beside its conversion, as `t2j run` does it; each change is first
held against PyTorch's own run of the original. ``--out`` keeps each outcome as a line of JSON; a run that finds the
file goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.torchvision_sources import SourcesNotFound, find_sources

from .change import CHANGES
from .corpora import Program, own, torchvision, training, vit_pytorch
from .tasks import Task, run, set_cache
from .trial import (
    DIFFERENT,
    EQUIVALENT,
    FAILURES,
    NO_VERDICT,
    NOT_CHECKED,
    SAME,
    UNCHANGED,
    UNCHECKED,
    Outcome,
    Tried,
)


def programs(options: argparse.Namespace) -> Iterator[Program]:
    """The programs that were asked for."""
    if options.programs:
        yield from training(options.only)
        return
    if "own" in options.corpora:
        yield from own(options.only)
    if "torchvision" in options.corpora:
        yield from torchvision(find_sources(options.torchvision), options.only)
    if "vit_pytorch" in options.corpora and options.vit_pytorch is not None:
        yield from vit_pytorch(options.vit_pytorch.resolve(), options.only)


def conversions(corpus: list[Program], options: argparse.Namespace, done: set[Tried]) -> list[Task]:
    """What is to be converted: every change alone, and random pairs."""
    rng = random.Random(options.seed)
    kinds = [one.name for one in CHANGES.values() if options.programs or not one.programs]
    names = [name for name in kinds if not options.changes or name in options.changes]
    wanted = {
        p.name: [(n,) for n in names] + [tuple(rng.sample(names, 2)) for _ in range(_pairs(names, options))]
        for p in corpus
    }
    return [
        Task(p, left, options.seed)
        for p in corpus
        if (left := tuple(n for n in dict.fromkeys(wanted[p.name]) if (p.name, n) not in done))
    ]


def checks(corpus: list[Program], options: argparse.Namespace, outcomes: Mapping[Tried, Outcome]) -> list[Task]:
    """What is to be checked of what was converted to another text, by kind of change as many as the options say."""
    kinds: dict[str, list[Outcome]] = {}
    for one in outcomes.values():
        if one.result in (EQUIVALENT, NO_VERDICT, NOT_CHECKED, DIFFERENT, UNCHECKED):
            kinds.setdefault(label(one), []).append(one)
    drawn: set[Tried] = set()
    for name, candidates in kinds.items():
        order = sorted(one.tried for one in candidates)
        random.Random(f"{options.seed} {name}").shuffle(order)
        drawn.update(order[: options.checks * (3 if name == PAIRS else 1)])
    open_ones = [one for one in outcomes.values() if one.result == NOT_CHECKED and one.tried in drawn]
    return [
        Task(p, changes, options.seed, checked=True)
        for p in corpus
        if (changes := tuple(one.changes for one in open_ones if one.program == p.name))
    ]


def _pairs(names: list[str], options: argparse.Namespace) -> int:
    return options.pairs if len(names) > 1 else 0


PAIRS = "pairs of changes"
COLUMNS = (SAME, EQUIVALENT, NO_VERDICT, NOT_CHECKED, *FAILURES)


def label(one: Outcome) -> str:
    """The row of the table that an outcome belongs to."""
    return one.changes[0] if len(one.changes) == 1 else PAIRS


def report(outcomes: Collection[Outcome]) -> bool:
    """Prints the table and every failure; whether there is none."""
    counts: dict[str, Counter[str]] = {}
    for one in outcomes:
        counts.setdefault(label(one), Counter())[one.result] += 1
    table = Table(box=None, pad_edge=False)
    table.add_column("change")
    for head in ("changed", *COLUMNS):
        table.add_column(head, justify="right")
    total: Counter[str] = Counter()
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == PAIRS, item[0])):
        total += count
        table.add_row(name, *_cells(count))
    table.add_row("all", *_cells(total))
    Console(width=180).print(table)
    failed = [one for one in outcomes if one.result in FAILURES]
    for one in sorted(failed, key=lambda one: (one.result, one.changes, one.program)):
        print(f"{one.result.upper()} {one.program}: {' + '.join(one.changes)}: {one.detail}")
    return not failed


def _cells(count: Counter[str]) -> list[str]:
    changed = sum(count.values()) - count[UNCHANGED]
    return [str(changed), *(str(count[name]) for name in COLUMNS)]


def kept(path: Path | None, seed: int) -> dict[Tried, Outcome]:
    """The outcomes that an earlier run wrote, with this seed; of a conversion that was checked later, the verdict."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    mine = [one for one in lines if one.pop("seed") == seed]
    outcomes = (Outcome(**{**one, "changes": tuple(one["changes"])}) for one in mine)
    return {one.tried: one for one in outcomes}


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Change sources without changing what they mean, and convert them.")
    parser.add_argument("--corpora", type=lambda text: text.split(","), default=["own", "torchvision", "vit_pytorch"])
    parser.add_argument("--programs", action="store_true", help="training programs, which are run as a whole")
    parser.add_argument("--torchvision", type=Path, help="a torchvision wheel, or a folder that holds torchvision/")
    parser.add_argument(
        "--vit-pytorch", type=Path, help="the folder that holds vit_pytorch/; without it, it is left out"
    )
    parser.add_argument("--only", default="", help="programs whose names hold this")
    parser.add_argument("--changes", type=lambda text: text.split(","), default=[], help="kinds, with commas between")
    parser.add_argument("--pairs", type=int, default=4, help="random pairs of changes for each program (4)")
    parser.add_argument(
        "--checks",
        type=int,
        default=24,
        help="programs of each kind that are checked, of those converted otherwise (24)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choices that changes have, and of the pairs")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--out", type=Path, help="where to keep every outcome, one a line; read to go on")
    options = parser.parse_args(arguments)
    if unknown := set(options.changes) - set(CHANGES):
        parser.error(f"no such change: {', '.join(sorted(unknown))}; there are: {', '.join(CHANGES)}")
    try:
        chosen = list(programs(options))
    except SourcesNotFound as error:
        parser.error(str(error))
    outcomes = kept(options.out, options.seed)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        open(options.out or os.devnull, "a", encoding="utf-8") as out,
        TemporaryDirectory() as cache,
        ProcessPoolExecutor(options.jobs, get_context("spawn"), set_cache, [cache]) as processes,
        Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar,
    ):
        for name, work in (
            ("converted", lambda: conversions(chosen, options, set(outcomes))),
            ("checked", lambda: checks(chosen, options, outcomes)),
        ):
            tasks = work()
            shown = bar.add_task(name, total=len(tasks))
            for future in as_completed([processes.submit(run, task) for task in tasks]):
                for one in future.result():
                    outcomes[one.tried] = one
                    print(json.dumps({"seed": options.seed, **asdict(one)}), file=out, flush=True)
                bar.update(shown, advance=1)
    return 0 if report(outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
