"""How often the right fixed bug is found: recall of a pair with the same root cause, its own program left out.

    python -m benchmarks.retrieval [--misses]

Every bug whose root cause occurs in another program is asked for, in the ways in which that happens when code is
mended: with the lines that a model answered for a span that the rules refused (the source, the program with the answer
in it, what it said); the same where the rules convert the whole source (`--llm always`, a verdict on somebody's JAX);
and with a whole draft, whose fault the check placed on a line, or nobody did. Bugs whose root cause occurs in no other
program have no answer here and are counted apart. Each root cause is given once, as in a prompt.

Printed are the shares of questions with a pair of the same root cause among the first 1, 5 and 10, for plain BM25 over
the same texts and for the index: over all programs, over the half on which its weights and words were chosen, and over
the other half. ``--misses`` lists what was not among the first five.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import re
import sqlite3
import time
from collections.abc import Callable, Sequence

from t2j_lsp import convert
from t2j_lsp.fixes.record import Pair, Query
from t2j_lsp.retrieval import Index, dataset

DEPTHS = (1, 5, 10)
Search = Callable[[Pair], list[Pair]]


class Plain:
    """BM25 over the words of each pair, with the words of the whole question."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        self.sqlite = sqlite3.connect(":memory:")
        self.sqlite.execute("CREATE VIRTUAL TABLE bugs USING fts5(text)")
        for number, pair in enumerate(pairs, 1):
            bug = pair.bug
            text = " ".join([pair.example.input_code, bug.error_code, bug.error, bug.fix_info, bug.fixed_code])
            self.sqlite.execute("INSERT INTO bugs(rowid, text) VALUES (?, ?)", (number, text))

    def search(self, query: Query) -> list[Pair]:
        words = sorted(set(re.findall(r"[A-Za-z_0-9]+", f"{query.source} {query.code} {query.error}")))
        asked = " OR ".join(f'"{word}"' for word in words)
        rows = self.sqlite.execute("SELECT rowid FROM bugs WHERE bugs MATCH ? ORDER BY bm25(bugs)", (asked,))
        return [self.pairs[number - 1] for (number,) in rows]


def held_out(pair: Pair) -> bool:
    """Whether a pair's program is in the half that nothing was chosen on."""
    return int(hashlib.sha256(pair.example.program.encode()).hexdigest(), 16) % 2 == 0


def ranks(questions: Sequence[Pair], search: Search) -> list[int]:
    """For each question, at which place the first pair of its root cause from another program came."""
    positions = []
    for pair in questions:
        causes = [p.bug.root_cause for p in search(pair) if p.example.program != pair.example.program]
        distinct = list(dict.fromkeys(causes))
        cause = pair.bug.root_cause
        positions.append(distinct.index(cause) + 1 if cause in distinct else 10**6)
    return positions


def shares(places: Sequence[int]) -> str:
    return "".join(f"  {sum(place <= depth for place in places) / len(places):5.2f}" for depth in DEPTHS)


@functools.cache
def reference(source: str) -> str:
    """What the rules make of a program."""
    return convert(source).code


def answer(pair: Pair) -> Query:
    """Of an answer to what the rules refused: they have nothing to compare it with."""
    return Query(pair.example.input_code, pair.faulty, pair.bug.error, lines=pair.lines)


def answer_beside_rules(pair: Pair) -> Query:
    source = pair.example.input_code
    return Query(source, pair.faulty, pair.bug.error, reference=reference(source), lines=pair.lines)


def draft(pair: Pair) -> Query:
    """Of a whole draft, at the line that the check named."""
    source, shown = pair.example.input_code, pair.bug.verification
    line = shown.first_difference[1] if shown else None
    return Query(source, pair.faulty, pair.bug.error, reference=reference(source), lines=(line, line) if line else None)


def draft_anywhere(pair: Pair) -> Query:
    source = pair.example.input_code
    return Query(source, pair.faulty, pair.bug.error, reference=reference(source))


def message(pair: Pair) -> Query:
    return Query(error=pair.bug.error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true")
    arguments = parser.parse_args()
    pairs = [pair for example in dataset() for pair in example.pairs]
    programs: dict[str, set[str]] = {}
    for pair in pairs:
        programs.setdefault(pair.bug.root_cause, set()).add(pair.example.program)
    questions = [pair for pair in pairs if len(programs[pair.bug.root_cause]) > 1]
    index, plain = Index(dataset()), Plain(pairs)

    def by(query: Callable[[Pair], Query]) -> Search:
        return lambda pair: [positions.pair for positions in index.search(query(pair), limit=len(pairs))]

    def baseline(pair: Pair) -> list[Pair]:
        return plain.search(Query(pair.example.input_code, pair.bug.error_code, pair.bug.error))

    alone = len(pairs) - len(questions)
    print(f"{len(pairs)} pairs, {len(programs)} root causes; {len(questions)} questions, and {alone} with no answer")
    unseen = [held_out(pair) for pair in questions]
    heads = ("all", f"chosen on ({unseen.count(False)})", f"held out ({unseen.count(True)})")
    print(f"{'':36}" + "".join(f"{head:>21}" for head in heads))
    print(f"{'asked with':36}" + "".join(f"  at {depth:2}" for depth in DEPTHS) * 3 + "     ms")
    rows: list[tuple[str, Search]] = [
        ("plain BM25: source, answer, message", baseline),
        ("an answer for a refused span", by(answer)),
        ("the same, beside the rules' own", by(answer_beside_rules)),
        ("a draft, and the line of the check", by(draft)),
        ("a draft", by(draft_anywhere)),
        ("the message alone", by(message)),
    ]
    for name, search in rows:
        start = time.perf_counter()
        positions = ranks(questions, search)
        spent = (time.perf_counter() - start) / len(questions) * 1000
        halves = [[r for r, new in zip(positions, unseen, strict=True) if new is half] for half in (False, True)]
        print(f"{name:36}" + "".join(map(shares, (positions, *halves))) + f"  {spent:5.1f}", flush=True)
        if arguments.misses and search is rows[2][1]:
            missed = [(pair, rank) for pair, rank in zip(questions, positions, strict=True) if rank > 5]
            print("\n".join(f"    {pair.id}: {pair.bug.error[:100]}" for pair, _ in missed))


if __name__ == "__main__":
    main()
