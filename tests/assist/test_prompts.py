"""Prompts: what stands in them, and which fixed bugs."""

from __future__ import annotations

from t2j_lsp import convert
from t2j_lsp.assist.prompts import first_prompt
from t2j_lsp.retrieval import Index, dataset

from .test_repair import SOURCE


def test_given_pairs_stand_in_the_augmented_prompt_all_of_them_and_none_in_the_standard_one() -> None:
    pairs = [pair for example in dataset() for pair in example.pairs][:40]
    prompt = first_prompt(convert(SOURCE), "augmented", Index(dataset()), pairs)
    assert prompt.pairs == tuple(pairs)
    assert all(f'"Example_id": "{pair.id}"' in prompt.messages[1]["content"] for pair in pairs)
    assert not first_prompt(convert(SOURCE), "standard", Index(dataset()), pairs).pairs
    assert first_prompt(convert(SOURCE), "augmented", Index(dataset()), ()).pairs == ()
