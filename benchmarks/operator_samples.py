"""Every sample call of PyTorch's operator database through the rules: how many agree, how many are left, and why.

    python -m benchmarks.operator_samples [SUBJECT ...]

The tests take two or three samples of each rule (``tests/rules/test_drive``); here every one runs, in every spelling.
Prints a line for each rule that does not agree throughout, and the totals. Takes about half an hour on two cores.
"""

from __future__ import annotations

import sys
import warnings

import jax
import torch

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.record import REGISTRY
from tests.rules.drive import drive
from tests.rules.samples import samples

ALL = 1000


def main(subjects: list[str]) -> None:
    """Drives the rules of ``subjects``, of all of them if there are none."""
    warnings.simplefilter("ignore")
    load_rules()
    torch.set_default_dtype(torch.float64)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    rules = [r for r in REGISTRY if r.emit is not None and not r.random and not r.drop]
    agreed = gaps = different = 0
    for rule in rules:
        if subjects and rule.subject not in subjects:
            continue
        found = samples(rule, ALL)
        outcome = drive({rule: found})[rule]
        problems = {what: lines for what, lines in outcome.problems.items() if what != "jit"}
        agreed, gaps, different = (
            agreed + outcome.agreed,
            gaps + len(outcome.gaps),
            different + sum(map(len, problems.values())),
        )
        if problems or outcome.gaps:
            counts = ", ".join(f"{what} {len(lines)}" for what, lines in problems.items())
            print(f"{rule.name}: agreed {outcome.agreed}, left {len(outcome.gaps)}, {counts or 'none differs'}")
            for lines in problems.values():
                print(f"    {lines[0][:200]}")
    print(f"{agreed} programs agree, {gaps} calls left alone, {different} observations differ")


if __name__ == "__main__":
    main(sys.argv[1:])
