"""Finding fixed bugs: by message, by code, by words, within a budget, and never of the same program when asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.retrieval import answer_beside_rules, held_out, ranks
from t2j_lsp.fixes.record import Pair, Query, prompt_tokens
from t2j_lsp.retrieval import Index, dataset, features


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(dataset())


def causes(index: Index, query: Query, limit: int = 5) -> list[str]:
    return [similar.pair.bug.root_cause for similar in index.search(query, limit=limit)]


def test_by_the_message_of_another_program(index: Index) -> None:
    error = "TypeError: Conv.__init__() missing 1 required keyword-only argument: 'rngs'"
    assert causes(index, Query(error=error))[0] == "rngs-missing"


def test_by_code_alone(index: Index) -> None:
    assert "in-place-assignment" in causes(index, Query(code="    y[0] = 2.0\n"))


def test_by_words(index: Index) -> None:
    assert causes(index, Query(words="gelu tanh approximation"))[0] == "gelu-approximation"


def test_a_program_can_be_left_out(index: Index) -> None:
    pair = index.search(Query(words="gelu tanh approximation"), limit=1)[0].pair
    others = index.search(
        Query(pair.example.input_code, pair.faulty, pair.bug.error),
        limit=20,
        but=lambda similar: similar.example.program == pair.example.program,
    )
    assert others and all(finding.pair.example.program != pair.example.program for finding in others)


def test_a_budget_of_tokens_holds(index: Index) -> None:
    query = Query(code="import jax.numpy as jnp\n\ndef f(x):\n    return jnp.mean(x)\n", words="axis")
    free = index.search(query, limit=10)
    budget = prompt_tokens([free[0].pair]) + 50
    similar = index.search(query, limit=10, tokens=budget)
    assert 0 < prompt_tokens([f.pair for f in similar]) <= budget < prompt_tokens([f.pair for f in free])


def test_distinct_gives_each_root_cause_once(index: Index) -> None:
    similar = index.search(Query(words="method left arrays have no"), limit=6, distinct=True)
    named = [one.pair.bug.root_cause for one in similar]
    assert len(set(named)) == len(named) == 6


def test_what_is_no_python_is_compared_by_its_words(index: Index) -> None:
    assert features.structure("def f(:") == ["unparsable"]
    assert causes(index, Query(code="def f(: jnp.rsqrt(x)"))


def test_full_text_syntax_in_a_search_is_text(index: Index) -> None:
    index.search(Query(words='"gelu" OR NEAR( * AND : ^'))
    index.search(Query(error="'; DROP TABLE bugs; --"))


def test_names_are_read_through_aliases() -> None:
    code = "import jax.numpy as np\nfrom jax import lax as l\ny = np.sum(l.rsqrt(x))\n"
    assert {"jax.numpy.sum", "jax.lax.rsqrt"} <= set(features.names(code))


def test_numbers_in_messages_are_all_alike() -> None:
    first, second = "shapes (3, 4) and (5,)", "shapes (7, 2) and (1,)"
    assert features.message(first) == features.message(second)


def test_what_the_rules_make_of_the_source_names_the_mistake(index: Index) -> None:
    source = "def f(x):\n    return torch.nn.functional.gelu(x).sum(1)\n"
    rules = "def f(x):\n    return jnp.sum(jax.nn.gelu(x, approximate=False), axis=1)\n"
    draft = "def f(x):\n    return jnp.sum(jax.nn.gelu(x, approximate=False), axis=0)\n"
    assert "reduce-over-batch" in causes(index, Query(source, draft, reference=rules), 3)


def test_recall_on_programs_that_nothing_was_chosen_on_stays_what_the_docs_say() -> None:
    pairs = [pair for example in dataset() for pair in example.pairs]
    programs: dict[str, set[str]] = {}
    for pair in pairs:
        programs.setdefault(pair.bug.root_cause, set()).add(pair.example.program)
    questions = [pair for pair in pairs if len(programs[pair.bug.root_cause]) > 1 and held_out(pair)]
    whole = Index(dataset())

    def search(pair: Pair) -> list[Pair]:
        return [similar.pair for similar in whole.search(answer_beside_rules(pair), limit=len(pairs))]

    result = ranks(questions, search)
    assert sum(rank <= 5 for rank in result) / len(result) >= 0.88


def test_the_index_answers_from_other_threads(index: Index) -> None:
    with ThreadPoolExecutor(2) as threads:
        result = list(threads.map(lambda word: causes(index, Query(words=word)), ["gelu tanh approximation", "rngs"]))
    assert all(result)
