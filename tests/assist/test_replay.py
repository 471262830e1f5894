"""Fixed bugs run again: a sample in real workers, and data that does not hold is found out."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fixed_bugs import CheckJudge, programs
from t2j_lsp import check
from t2j_lsp.assist.judging import failure_of, masked
from t2j_lsp.assist.replay import replay
from t2j_lsp.contract import ObjectVerdict, VerdictKind
from t2j_lsp.fixes.record import Example
from t2j_lsp.retrieval import dataset

SAMPLE = 6


def program(name: str) -> Example:
    return next(example for example in programs(dataset()) if example.program == name)


def sample() -> list[Example]:
    """One bug of each of some programs, others with every change of the data."""
    every = programs(dataset())
    rng = random.Random(len(every))
    return [example.with_errors([rng.choice(example.errors)]) for example in rng.sample(every, SAMPLE)]


@pytest.mark.parametrize("example", sample(), ids=lambda example: next(example.pairs).id)
def test_a_sample_of_the_data_holds(example: Example, judge: CheckJudge) -> None:
    assert [row.problem for row in replay(example, judge)] == ["", ""]


def test_a_fix_that_is_wrong_is_found_out(judge: CheckJudge) -> None:
    example = program("rms_norm")
    wrong = replace(example, fix_output=example.fix_output.replace("+ self.eps", "+ 2 * self.eps"))
    rows = list(replay(wrong, judge))
    assert len(rows) == 1 and rows[0].problem.startswith("the fixed code is different")


def test_a_bug_that_is_none_is_found_out(judge: CheckJudge) -> None:
    example = program("rms_norm")
    bug = example.errors[0]
    harmless = replace(bug, error_code=bug.fixed_code.replace("x**2", "x * x"), error="")
    rows = list(replay(example.with_errors([harmless]), judge))
    assert rows[1].problem == "the faulty code is equivalent: no difference was found"


def test_another_message_than_the_stated_one_is_found_out(judge: CheckJudge) -> None:
    example = program("rms_norm")
    bug = next(b for b in example.errors if b.root_cause == "jnp-rsqrt")
    rows = list(replay(example.with_errors([replace(bug, error="NameError: no")]), judge))
    assert "has no attribute 'rsqrt'" in rows[1].problem and "NameError: no" in rows[1].problem


def test_a_verdict_that_is_no_difference_is_no_failure() -> None:
    assert failure_of(ObjectVerdict("f", VerdictKind.UNCHECKED, "it fails in eval: TypeError: x")) is None


def test_where_a_function_of_the_check_stands_is_no_part_of_a_message() -> None:
    own = sorted(Path(check.__file__).parent.glob("workers/**/*.py"))
    assert any(path.parent.name == "jax_side" for path in own)
    for path in own:
        said = f"it fails in eval: TypeError: tracing the function run at {path}:12 for jit, f at /tmp/a/net.py:3"
        failure = failure_of(ObjectVerdict("f", VerdictKind.DIFFERENT, said))
        assert failure is not None
        assert failure.message == "TypeError: tracing the function run for jit, f at net.py:3"


def test_messages_differ_only_in_numbers_from_run_to_run() -> None:
    assert masked("differs by 0.51 of its scale at [0]") == masked("differs by 1e-05 of its scale at [12]")
    assert masked("shape (5,)") != masked("shape (5, 3)")
