"""Every rule against PyTorch: values and gradients of real calls in every spelling, in float64.

The calls come from PyTorch's own operator database (see ``samples``); known differences are in ``deviations``.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest
import torch

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.record import REGISTRY, Rule

from .deviations import DEVIATIONS, UNDRIVEN, WHOLLY
from .drive import Outcome, drive
from .samples import NO_TIES, samples

LIMIT = 2  # samples of each rule, besides the one of whole numbers

load_rules()
SUBJECTS = sorted({rule.subject for rule in REGISTRY if rule.emit is not None})


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Both libraries compute in float64, also what starts from Python numbers; what PyTorch leaves unset is NaN."""
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True, warn_only=True)  # Fills memory that nothing was written to.
    with jax.enable_x64(True):
        yield
    torch.use_deterministic_algorithms(False)
    torch.set_default_dtype(torch.float32)


def calls(rule: Rule) -> bool:
    """Whether the rule answers calls that can be compared: no drawn numbers, no statements that vanish."""
    return rule.emit is not None and not rule.random and not rule.drop


@pytest.mark.parametrize("subject", SUBJECTS)
def test_rules_agree_with_pytorch(subject: str) -> None:
    """And every rule of a subject is driven, but for those that stand in a table."""
    rules = [rule for rule in REGISTRY if rule.subject == subject and calls(rule)]
    outcomes = drive({rule: result for rule in rules if (result := samples(rule, LIMIT))})
    assert {rule.name: problems for rule, outcome in outcomes.items() if (problems := unexpected(rule, outcome))} == {}
    if subject in WHOLLY:
        driven = {rule.name for rule, outcome in outcomes.items() if outcome.agreed}
        expected = {rule.name for rule in rules}
        assert expected - driven - set(DEVIATIONS) == set(UNDRIVEN) & expected


def unexpected(rule: Rule, outcome: Outcome) -> dict[str, list[str]]:
    """Problems that are in no table, and rows of the table that are no longer needed."""
    problems = {what: lines for what, lines in outcome.problems.items() if what != "jit"}
    allowed = DEVIATIONS.get(rule.name, {})
    unneeded = {what: [f"no longer deviates: {why}"] for what, why in allowed.items() if what not in problems}
    return {what: lines[:3] for what, lines in problems.items() if what not in allowed} | unneeded


def test_exceptions_name_rules() -> None:
    names = {rule.name for rule in REGISTRY}
    assert set(DEVIATIONS) | set(UNDRIVEN) | set(NO_TIES) <= names
    assert set(WHOLLY) <= set(SUBJECTS)
