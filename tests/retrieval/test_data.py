"""The data of fixed bugs: complete, fresh, and what it says of itself."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import resources

import pytest

from benchmarks.fixed_bugs import PAGES, bare, programs
from t2j_lsp.fixes.record import CATEGORIES, Example, FixedBug, from_jsonl, planted, to_jsonl
from t2j_lsp.retrieval import dataset, terms
from t2j_lsp.retrieval.authoring import PageError, read_page, read_pages

EXAMPLES = dataset()
PAIRS = [pair for example in EXAMPLES for pair in example.pairs]


def test_the_data_is_what_the_pages_say_and_what_running_them_showed() -> None:
    """A page that was edited has to be run again: ``python -m benchmarks.fixed_bugs --record``."""
    written = {page.program: bare(page) for page in read_pages(PAGES)}
    assert {example.program: bare(example) for example in programs(EXAMPLES)} == written


def test_it_survives_its_own_file_format() -> None:
    assert from_jsonl(to_jsonl(EXAMPLES)) == EXAMPLES


def test_each_pair_has_one_id() -> None:
    assert [pair_id for pair_id, count in Counter(pair.id for pair in PAIRS).items() if count > 1] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.example_id)
def test_an_example_is_complete(example: Example) -> None:
    ast.parse(example.input_code)
    ast.parse(example.fix_output)
    assert example.title and example.object in example.input_code and example.object in example.fix_output
    assert "torch" in example.input_code and "torch" not in example.fix_output
    for bug in example.errors:
        assert bug.sub_category in CATEGORIES[bug.category]
        assert bug.fix_info.endswith((".", ")")) and bug.error_code != bug.fixed_code
        assert bug.verification is not None, f"{bug.root_cause} was never run"
        assert bug.error, f"{bug.root_cause} says nothing"
        assert bug.error_code in example.weak_output


def test_the_same_root_cause_is_of_the_same_category_everywhere() -> None:
    kinds: dict[str, set[tuple[str, str]]] = {}
    for pair in PAIRS:
        kinds.setdefault(pair.bug.root_cause, set()).add((pair.bug.category, pair.bug.sub_category))
    assert {cause: kind for cause, kind in kinds.items() if len(kind) > 1} == {}


def test_every_category_of_the_study_has_pairs() -> None:
    assert {pair.bug.category for pair in PAIRS} == set(CATEGORIES)


def test_a_fix_that_is_not_in_the_program_is_refused() -> None:
    bug = FixedBug("cause", "training", "mode", "x = 1\n", "x = 2\n", "Why.")
    with pytest.raises(ValueError, match="stands 0 times"):
        planted("x = 3\n", bug)


def test_errors_that_share_a_line_are_shared_out_over_drafts() -> None:
    page = next(page for page in read_pages(PAGES) if len(list(page.drafts())) > 1)
    drafts = list(page.drafts())
    assert sorted(b.root_cause for d in drafts for b in d.errors) == sorted(b.root_cause for b in page.errors)
    for draft in drafts:
        ast.parse(draft.weak_output) if draft.errors else None
        assert all(bug.error_code in draft.weak_output for bug in draft.errors)


def test_a_page_without_an_explanation_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    page = (PAGES / "rms_norm.md").read_text()
    bug = page.index("\n\n", page.index("arrays and dtypes / axes"))
    broken = tmp_path / "rms_norm.md"
    broken.write_text(page[:bug] + page[page.index("\n\n### Faulty", bug) :])
    with pytest.raises(PageError, match="nothing says what is wrong"):
        read_page(broken)


def test_no_message_holds_a_path_of_the_machine_that_it_was_recorded_on() -> None:
    assert [pair.id for pair in PAIRS if re.search(r"(?<![\w.:/])/\S*/[\w.-]+\.py", pair.bug.error)] == []


def test_the_words_that_pairs_are_found_by_are_those_that_would_be_worked_out() -> None:
    """If this fails: python -m benchmarks.fixed_bugs --terms"""
    assert (resources.files("t2j_lsp.retrieval") / terms.FILE).read_text(encoding="utf-8") == terms.to_lines(PAIRS)
