"""Finds the fixed bugs that help with a piece of code: SQLite's full-text search over names, structure and messages."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import resources

from t2j_lsp.fixed_bugs import Example, Found, Pair, Query, from_jsonl

from . import features

_FIELDS = ("source", "names", "structure", "differences", "error", "words")
CHARACTERS_PER_TOKEN = 3.5
"""Of code in the usual tokenizers, about; what a budget is counted by where no tokenizer is known."""


WEIGHTS = {"source": 0.3, "names": 1.0, "structure": 0.5, "differences": 0.5, "error": 0.3, "words": 1.0}
"""How much a match in each field counts."""
_TERMS = 80
"""Terms of a field that a search asks for: the rarest tell most, and long queries take long."""


@functools.cache
def dataset() -> tuple[Example, ...]:
    """The examples that t2j brings."""
    return from_jsonl(resources.files(__package__).joinpath("fixed_bugs.jsonl").read_text(encoding="utf-8"))


class Index:
    """Full-text search over pairs, in memory. Not thread-safe."""

    def __init__(self, examples: Iterable[Example], weights: dict[str, float] | None = None) -> None:
        self.weights = weights or WEIGHTS
        self._pairs = [pair for example in examples for pair in example.pairs]
        self._sqlite = sqlite3.connect(":memory:")
        self._sqlite.execute(f"CREATE VIRTUAL TABLE bugs USING fts5({', '.join(_FIELDS)}, tokenize='unicode61')")
        self._common: Counter[str] = Counter()
        rows = []
        for pair in self._pairs:
            bug = pair.bug
            row = _terms(Query(pair.example.input_code, bug.error_code, bug.error, ""))
            row["words"] = features.message(f"{bug.root_cause.replace('-', ' ')} {bug.category} {bug.fix_info}")
            row["names"] += features.names(bug.fixed_code)
            row["differences"] = features.differences(bug.fixed_code, bug.error_code)
            rows.append([" ".join(map(_token, row[field])) for field in _FIELDS])
            self._common.update({_token(term) for field in _FIELDS for term in row[field]})
        holes = ", ".join("?" * (len(_FIELDS) + 1))
        self._sqlite.executemany(
            f"INSERT INTO bugs(rowid, {', '.join(_FIELDS)}) VALUES ({holes})",
            [(number, *row) for number, row in enumerate(rows, 1)],
        )

    def __len__(self) -> int:
        return len(self._pairs)

    def search(
        self,
        query: Query,
        limit: int = 5,
        but: Callable[[Pair], bool] = lambda pair: False,
        tokens: int | None = None,
        distinct: bool = False,
    ) -> list[Found]:
        """The pairs that fit best, best first; the arguments are those of ``BugIndex``."""
        scores: Counter[int] = Counter()
        for field, terms in _terms(query).items():
            for number, score in self._field(field, terms):
                scores[number] += score
        found: list[Found] = []
        causes: set[str] = set()
        left = tokens
        for number, score in scores.most_common():
            pair = self._pairs[number - 1]
            if len(found) == limit:
                break
            if but(pair) or (distinct and pair.bug.root_cause in causes):
                continue
            size = prompt_tokens([pair])
            if left is not None:
                if size > left:
                    continue
                left -= size
            causes.add(pair.bug.root_cause)
            found.append(Found(pair, score))
        return found

    def _field(self, field: str, terms: Sequence[str]) -> list[tuple[int, float]]:
        """Pairs by one part of the query: BM25, in which rare words count most, times the field's weight."""
        known = sorted({t for t in map(_token, terms) if t in self._common}, key=lambda t: self._common[t])[:_TERMS]
        if not known:
            return []
        columns = {"words": "{words error names}"}.get(field, f"{{{field}}}")
        asked = f"{columns} : ({' OR '.join(known)})"
        rows = self._sqlite.execute("SELECT rowid, -bm25(bugs) FROM bugs WHERE bugs MATCH ?", (asked,)).fetchall()
        return [(number, self.weights[field] * score) for number, score in rows]


def prompt_tokens(pairs: Iterable[Pair]) -> int:
    """About how many tokens pairs take in a prompt."""
    return round(sum(len(json.dumps(pair.to_json())) for pair in pairs) / CHARACTERS_PER_TOKEN)


def _terms(query: Query) -> dict[str, list[str]]:
    """A query by the fields of the index."""
    return {
        "source": features.names(query.source) if query.source else [],
        "names": features.names(query.code) if query.code else [],
        "structure": features.structure(query.code) if query.code else [],
        "differences": features.differences(query.source, query.code) if query.code else [],
        "error": features.message(query.error),
        "words": features.message(query.words),
    }


def _token(term: str) -> str:
    """A term as one word of the full-text search, which would cut it at its dots."""
    return "".join(c if c.isalnum() else f"q{ord(c):x}q" for c in term.lower()) or "q"
