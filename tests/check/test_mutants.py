"""A small part of the mutation benchmark: mistakes planted by rule are found, at their line."""

from __future__ import annotations

import pytest

from benchmarks.mutants import Bench, chosen
from benchmarks.mutants_equivalence import same_computation
from benchmarks.mutants_objects import Subject, subjects
from benchmarks.mutants_operators import Mutant
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.contract import VerdictKind

SAMPLE = (
    "RMSNorm", "RunningNorm", "masked_mean", "huber", "standardize", "q_sample", "triplet", "total_variation",
    "hinge_gan", "clip_rows",
)  # fmt: skip
EACH = 2


@pytest.fixture(scope="module")
def bench(pool: Pool) -> Bench:
    return Bench(pool)


@pytest.mark.parametrize("name", SAMPLE)
def test_mutants_are_different_at_their_statement_and_the_right_conversion_is_equivalent(
    bench: Bench, name: str
) -> None:
    subject = next(s for s in subjects() if s.name == name)
    right = bench.outcome(subject, None, seed=3)
    assert right.verdict == VerdictKind.EQUIVALENT, right.reason
    placed = 0
    for mutant in _mistakes(subject):
        outcome_of_place = bench.outcome(subject, mutant, seed=3)
        assert outcome_of_place.caught, f"{mutant}: {outcome_of_place.verdict} {outcome_of_place.reason}"
        placed += outcome_of_place.placed
    assert placed == EACH


def _mistakes(subject: Subject) -> list[Mutant]:
    """The first mutants of an object that are no other spelling of the same."""
    candidates = chosen(subject, 3 * EACH, seed=5)
    return [m for m in candidates if not same_computation(subject, m.text)][:EACH]


def test_the_corpus_gives_enough_mutants_of_enough_objects() -> None:
    every = subjects()
    assert len(every) >= 60
    assert sum(len(chosen(s, 1000, seed=0)) for s in every) >= 1000
