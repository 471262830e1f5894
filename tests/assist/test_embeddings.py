"""Embeddings beside the full-text search: both rankings count, vectors are kept, and without an answer it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scripted_endpoint import serve
from t2j_lsp import assist
from t2j_lsp.assist.embeddings import EmbeddedIndex, Embedder, text_of_pair
from t2j_lsp.assist.model import Endpoint
from t2j_lsp.contract import Options
from t2j_lsp.fixes.record import Query, SimilarPair, prompt_tokens
from t2j_lsp.retrieval import Index, dataset

from .test_repair import RIGHT, SOURCE, WRONG

PAIRS = tuple(pair for example in dataset() for pair in example.pairs)
QUERY = Query(words="gelu tanh approximation")


def meaning(text: str) -> list[float]:
    """A vector that tells texts with a momentum in them from all others."""
    return [1.0, 0.1] if "momentum" in text else [0.1, 1.0]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(dataset())


def test_both_rankings_count(index: Index) -> None:
    def about_momentum(similar: list[SimilarPair]) -> int:
        return sum("momentum" in text_of_pair(one.pair) for one in similar)

    with serve([], meaning) as script:
        joined = EmbeddedIndex(index, PAIRS, Embedder(Endpoint("e", script.url)))
        similar = joined.search(Query(words="gelu tanh approximation exact momentum"), 6)
    by_words = index.search(Query(words="gelu tanh approximation exact momentum"), 6)
    assert about_momentum(by_words) < about_momentum(similar)
    assert any(one.pair.bug.root_cause == "gelu-approximation" for one in similar)


def test_limits_hold_for_the_joined_ranking(index: Index) -> None:
    with serve([], meaning) as script:
        joined = EmbeddedIndex(index, PAIRS, Embedder(Endpoint("e", script.url)))
        few = joined.search(QUERY, 50, lambda pair: pair.example.program == "mlp_classifier", 1500, distinct=True)
    causes = [one.pair.bug.root_cause for one in few]
    assert few and len(causes) == len(set(causes)) and prompt_tokens(one.pair for one in few) <= 1500
    assert all(one.pair.example.program != "mlp_classifier" for one in few)


def test_vectors_are_kept_on_disk(index: Index, tmp_path: Path) -> None:
    kept = tmp_path / "vectors" / "embeddings.sqlite"
    with serve([], meaning) as script:
        first = EmbeddedIndex(index, PAIRS, Embedder(Endpoint("e", script.url), kept)).search(QUERY)
        sent = len(script.embedded)
        again = EmbeddedIndex(index, PAIRS, Embedder(Endpoint("e", script.url), kept)).search(QUERY)
    assert sent == len(set(script.embedded)) == len(script.embedded) and [f.pair for f in first] == [
        f.pair for f in again
    ]


def test_a_cache_that_can_not_be_used_is_none(index: Index, tmp_path: Path) -> None:
    broken = tmp_path / "embeddings.sqlite"
    broken.write_text("no data base")
    with serve([], meaning) as script:
        assert EmbeddedIndex(index, PAIRS, Embedder(Endpoint("e", script.url), broken)).search(QUERY)


def test_without_an_answer_the_full_text_search_goes_on_and_says_so_once(index: Index) -> None:
    said: list[str] = []
    with serve([]) as script:
        joined = EmbeddedIndex(index, PAIRS, Embedder(Endpoint("e", script.url, retries=0)), said.append)
        similar = [joined.search(QUERY) for _ in range(2)]
    assert similar == [index.search(QUERY)] * 2 and len(joined) == len(index)
    assert len(said) == 1 and "answered 404" in said[0] and "full-text search alone" in said[0]


def test_a_repair_asks_for_embeddings_where_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T2J_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "slope.py"
    file.write_text(SOURCE)
    with serve([WRONG, RIGHT], meaning) as script:
        result = assist.repair(file, ["m"], base_url=script.url, embeddings="e", options=Options())
    assert result.ended == "all verified" and result.rounds == 2
    assert any("torch.ops.aten.cumsum" in text for text in script.embedded)
    assert (tmp_path / "cache" / "embeddings.sqlite").exists()
