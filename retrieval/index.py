"""Finds the fixed bugs that help with a piece of code: SQLite's full-text search over names, structure and messages."""

from __future__ import annotations

import functools
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import resources

from t2j_lsp.fixes.record import Example, Pair, Query, SimilarPair, chosen, from_jsonl

from . import features
from .edits import NO_COUNTERPART, edits, forms
from .flow import unused
from .terms import terms_of

WEIGHTS = {
    "source": 0.3, "names": 0.5, "structure": 0.3, "differences": 0.2, "edits": 0.5, "forms": 0.2, "flow": 2.0,
    "error": 0.3, "words": 1.0,
}  # fmt: skip
"""The parts of a pair that are searched, and how much a match in each counts: chosen on half of the programs."""
_OTHER_OUTCOME = 0.75
"""What is left of a score where one draft stopped with an error and the other computed wrong values."""
_TERMS = 80
"""Terms of a field that a search asks for: the rarest tell most, and long queries take long."""
_RAISED = re.compile(r"[\w.]*(Error|Exception|Warning|Interrupt|Exit)\b")


@functools.cache
def dataset() -> tuple[Example, ...]:
    """The examples that t2j brings."""
    return from_jsonl(resources.files(__package__).joinpath("fixed_bugs.jsonl").read_text(encoding="utf-8"))


class Index:
    """Full-text search over pairs, in memory, a table for each field. It may be used from several threads."""

    def __init__(self, examples: Iterable[Example], weights: dict[str, float] | None = None) -> None:
        self.weights = weights or WEIGHTS
        self.pairs = tuple(pair for example in examples for pair in example.pairs)
        self._lock = threading.Lock()
        self._sqlite = sqlite3.connect(":memory:", check_same_thread=False)
        self._common: dict[str, Counter[str]] = {}
        rows = [terms_of(pair) for pair in self.pairs]
        for field in WEIGHTS:
            texts = [[_token(term) for term in row[field]] for row in rows]
            self._common[field] = Counter(term for text in texts for term in set(text))
            self._sqlite.execute(f"CREATE VIRTUAL TABLE {field} USING fts5(text, tokenize='unicode61')")
            numbered = [(number, " ".join(text)) for number, text in enumerate(texts, 1)]
            self._sqlite.executemany(f"INSERT INTO {field}(rowid, text) VALUES (?, ?)", numbered)

    def __len__(self) -> int:
        return len(self.pairs)

    def search(
        self,
        query: Query,
        limit: int = 5,
        but: Callable[[Pair], bool] = lambda pair: False,
        tokens: int | None = None,
        distinct: bool = False,
    ) -> list[SimilarPair]:
        """The pairs that fit best, best first; the arguments are those of ``BugIndex``."""
        scores: dict[int, float] = {}
        for field, terms in _terms(query).items():
            for number, score in self._field(field, terms):
                scores[number] = scores.get(number, 0.0) + score
        if query.error:
            raised = _RAISED.match(query.error.strip()) is not None
            for number in scores:
                if (_RAISED.match(self.pairs[number - 1].bug.error) is not None) != raised:
                    scores[number] *= _OTHER_OUTCOME
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        ranked = (SimilarPair(self.pairs[number - 1], score) for number, score in best)
        return chosen((one for one in ranked if not but(one.pair)), limit, tokens, distinct)

    def _field(self, field: str, terms: Sequence[str]) -> list[tuple[int, float]]:
        """Pairs by one part of the query: BM25, in which rare words count most, times the field's weight."""
        common = self._common[field]
        known = sorted({t for t in map(_token, terms) if t in common}, key=lambda t: (common[t], t))[:_TERMS]
        if not known:
            return []
        asked = f"SELECT rowid, -bm25({field}) FROM {field} WHERE {field} MATCH ?"
        with self._lock:
            rows = self._sqlite.execute(asked, (" OR ".join(known),)).fetchall()
        return [(number, self.weights[field] * score) for number, score in rows]


def _terms(query: Query) -> dict[str, list[str]]:
    """A query by the fields of the index."""
    code = query.code
    if query.lines is not None:
        code = "\n".join(code.splitlines()[query.lines[0] - 1 : query.lines[1]]) + "\n"
    return {
        "source": features.names(query.source) if query.source else [],
        "names": features.names(code) if code else [],
        "structure": features.structure(code) if code else [],
        "differences": features.differences(query.source, code) if code else [],
        "edits": _edits(query) if query.code else [],
        "forms": sorted(forms(code)) if code and query.lines else [],
        "flow": list(unused(query.code)),
        "error": features.message(query.error),
        "words": features.message(query.words),
    }


def _edits(query: Query) -> list[str]:
    """What the draft does to what the rules make of the source; to the source itself where they have no counterpart."""
    if query.reference:
        changes = edits(query.reference, query.code, query.lines, only=features.defined(query.source))
        if changes and not changes[0].startswith(NO_COUNTERPART):
            return changes
    return edits(query.source, query.code, query.lines, torch=True)


def _token(term: str) -> str:
    """A term as one word of the full-text search, which would cut it at its dots."""
    return "".join(c if c.isalnum() else f"q{ord(c):x}q" for c in term.lower()) or "q"
