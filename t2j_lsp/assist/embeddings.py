"""Fixed bugs by likeness of meaning: embeddings from an endpoint of OpenAI's protocol, beside the full-text search.

Both rankings are joined by reciprocal rank fusion: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms
Condorcet and individual rank learning methods" (2009), with their constant of 60.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from operator import mul
from pathlib import Path

from t2j_lsp.contract import T2JError
from t2j_lsp.fixes.record import BugIndex, Pair, Query, SimilarPair, chosen

from .model import Endpoint, ModelError

RANK = 60
BATCH = 64
"""Texts in one request."""
LONGEST = 6000
"""Characters of a text that are sent: what embedding models take is limited."""

Vector = Sequence[float]


class Embedder:
    """Vectors of length 1 for texts. ``cache`` is a file that keeps them, so that a text is sent once."""

    def __init__(self, endpoint: Endpoint, cache: Path | None = None) -> None:
        self.endpoint, self._cache = endpoint, cache
        self._known: dict[str, Vector] = {}

    def __call__(self, texts: Sequence[str]) -> list[Vector]:
        """Raises ModelError where the endpoint gives none, and T2JError where the openai package is missing."""
        keys = [self._key(text) for text in texts]
        self._known |= self._kept([key for key in keys if key not in self._known])
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        for start in range(0, len(missing), BATCH):
            part = dict(list(missing.items())[start : start + BATCH])
            fresh = dict(zip(part, self._asked(list(part.values())), strict=True))
            self._keep(fresh)
            self._known |= fresh
        return [self._known[key] for key in keys]

    def _asked(self, texts: list[str]) -> list[Vector]:
        try:
            import openai
        except ImportError:
            raise T2JError("embeddings need the openai package: pip install 't2j-lsp[llm]'") from None
        where = self.endpoint
        options = {"max_retries": where.retries, "timeout": where.timeout}
        try:
            with openai.OpenAI(api_key=where.key or "none", base_url=where.base_url, **options) as client:  # type: ignore[arg-type]
                response = client.embeddings.create(model=where.model, input=texts, encoding_format="float").data
            vectors = [_unit(one.embedding) for one in sorted(response, key=lambda one: one.index)]
        except openai.APIStatusError as error:
            raise ModelError(f"{where.host} answered {error.status_code}") from None
        except (openai.APIError, OSError, ValueError, TypeError, AttributeError) as error:
            raise ModelError(f"{where.host}: {type(error).__name__}") from None
        if len(vectors) != len(texts):
            raise ModelError(f"{where.host} gave {len(vectors)} embeddings for {len(texts)} texts")
        return vectors

    def _key(self, text: str) -> str:
        return hashlib.sha256("\0".join([self.endpoint.base_url or "", self.endpoint.model, text]).encode()).hexdigest()

    @contextlib.contextmanager
    def _file(self) -> Iterator[sqlite3.Connection | None]:
        """The file of kept vectors. One that can't be used is as good as none."""
        try:
            file = self._opened()
        except (OSError, sqlite3.Error):
            file = None
        if file is None:
            yield None
            return
        with contextlib.suppress(sqlite3.Error), contextlib.closing(file), file:
            yield file

    def _opened(self) -> sqlite3.Connection | None:
        if self._cache is None:
            return None
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(self._cache)
        file.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB)")
        return file

    def _kept(self, keys: Sequence[str]) -> dict[str, Vector]:
        kept: dict[str, Vector] = {}
        with self._file() as file:
            for key in keys:
                if file is None:
                    break
                row = file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    kept[key] = array("f", row[0])
        return kept

    def _keep(self, vectors: dict[str, Vector]) -> None:
        with self._file() as file:
            if file is not None:
                rows = [(key, array("f", vector).tobytes()) for key, vector in vectors.items()]
                file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


class EmbeddedIndex:
    """An index that joins the ranking of another with that by embeddings. Use it from a thread: it waits for answers.

    Where the endpoint gives none, it says so once in a line to ``on_progress``, and the other's ranking alone counts.
    """

    def __init__(
        self,
        index: BugIndex,
        pairs: Sequence[Pair],
        embed: Embedder,
        on_progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._index, self._pairs, self._embed, self._on_progress = index, pairs, embed, on_progress
        self._works = True

    def __len__(self) -> int:
        return len(self._index)

    def search(
        self,
        query: Query,
        limit: int = 5,
        but: Callable[[Pair], bool] = lambda pair: False,
        tokens: int | None = None,
        distinct: bool = False,
    ) -> list[SimilarPair]:
        """The pairs that fit best by both rankings; the arguments are those of ``BugIndex``."""
        if self._works:
            try:
                near = self._nearest(query)
            except ModelError as error:
                self._works = False
                self._on_progress(f"no embeddings ({error}); fixed bugs are found by full-text search alone")
        if not self._works:
            return self._index.search(query, limit, but, tokens, distinct)
        by_words = [ranked.pair for ranked in self._index.search(query, len(self._pairs))]
        scores: dict[str, float] = {}
        for ranking in (by_words, near):
            for rank, pair in enumerate(ranking, 1):
                scores[pair.id] = scores.get(pair.id, 0.0) + 1 / (RANK + rank)
        joined = sorted(near, key=lambda pair: -scores[pair.id])
        return chosen((SimilarPair(pair, scores[pair.id]) for pair in joined if not but(pair)), limit, tokens, distinct)

    def _nearest(self, query: Query) -> list[Pair]:
        vectors = self._embed([*map(text_of_pair, self._pairs), text_of_query(query)])
        asked = vectors[-1]
        near = {pair.id: sum(map(mul, asked, vector)) for pair, vector in zip(self._pairs, vectors, strict=False)}
        return sorted(self._pairs, key=lambda pair: -near[pair.id])


def text_of_pair(pair: Pair) -> str:
    """What of a fixed bug is embedded."""
    bug = pair.bug
    return f"{bug.error_code}\n{bug.error}\n{bug.fix_info}\n{bug.fixed_code}"[:LONGEST]


def text_of_query(query: Query) -> str:
    """What of a question is embedded, and sent."""
    code = query.code
    if query.lines is not None:
        code = "\n".join(code.splitlines()[query.lines[0] - 1 : query.lines[1]])
    return "\n".join(part for part in (code, query.error, query.words, query.source) if part)[:LONGEST]


def _unit(vector: Sequence[float]) -> Vector:
    length = sqrt(sum(map(mul, vector, vector)))
    if not length:
        raise ValueError("a vector of zeros")
    return array("f", (value / length for value in vector))
