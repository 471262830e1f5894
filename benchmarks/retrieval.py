"""How often the right fixed bug is found: recall of a pair with the same root cause, its own program left out.

    python -m benchmarks.retrieval [--misses]

Every bug whose root cause occurs in another program is asked for as a repair would: the PyTorch source, the faulty
lines (what a model answered for a span) or the whole faulty program (a draft), and its message. Printed are the shares
of questions with a pair of the same root cause among the first 1, 5 and 10: for plain BM25 over the same texts, and for
the index by what is asked with. ``--misses`` lists what was not among the first five.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import time
from collections.abc import Callable

from t2j_lsp.fixed_bugs import Pair, Query
from t2j_lsp.retrieval import Index, dataset

DEPTHS = (1, 5, 10)
SPAN = ("source", "code", "error")
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


def recall(questions: list[Pair], search: Search) -> tuple[list[float], list[Pair]]:
    """The share of questions answered within each depth, and those not answered within five."""
    ranks = []
    for pair in questions:
        found = [p for p in search(pair) if p.example.program != pair.example.program]
        rank = next((i for i, p in enumerate(found, 1) if p.bug.root_cause == pair.bug.root_cause), 10**6)
        ranks.append(rank)
    shares = [sum(rank <= depth for rank in ranks) / len(ranks) for depth in DEPTHS]
    return shares, [pair for pair, rank in zip(questions, ranks, strict=True) if rank > 5]


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

    def asked(*fields: str) -> Search:
        def search(pair: Pair) -> list[Pair]:
            known = {"source": pair.example.input_code, "code": pair.bug.error_code, "error": pair.bug.error}
            known["draft"] = pair.faulty
            query = Query(**{"code" if field == "draft" else field: known[field] for field in fields})
            return [f.pair for f in index.search(query, limit=len(pairs))]

        return search

    def baseline(pair: Pair) -> list[Pair]:
        return plain.search(Query(pair.example.input_code, pair.bug.error_code, pair.bug.error))

    print(f"{len(pairs)} pairs, {len(programs)} root causes, {len(questions)} questions")
    print(f"{'asked with':30}" + "".join(f"  at {d:2}" for d in DEPTHS) + "   ms")
    rows: list[tuple[str, Search]] = [("plain BM25: source, code, error", baseline)]
    kinds = (SPAN, ("code", "error"), ("code",), ("error",), ("source", "draft", "error"), ("draft", "error"))
    rows += [(f"index: {', '.join(kind)}", asked(*kind)) for kind in kinds]
    for name, search in rows:
        start = time.perf_counter()
        shares, missed = recall(questions, search)
        spent = (time.perf_counter() - start) / len(questions) * 1000
        print(f"{name:30}" + "".join(f"  {s:5.2f}" for s in shares) + f"  {spent:4.1f}")
        if arguments.misses and name == f"index: {', '.join(SPAN)}":
            print("\n".join(f"    {pair.id}: {pair.bug.error[:100]}" for pair in missed))


if __name__ == "__main__":
    main()
