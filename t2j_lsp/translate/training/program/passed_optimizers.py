"""Parameters that classes of optimizers are passed for: ``def fit(model, opt_func=torch.optim.SGD)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set

from t2j_lsp.translate.inference.call_sites import defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact
from t2j_lsp.translate.rule.optimizer_values import class_for_all


def passed_optimizers(inference: Inference, given: Mapping[ast.arg, Set[Fact]]) -> dict[ast.AST, Fact]:
    """The class that each such parameter is read as; ``given`` is what the file's calls pass for any parameter."""
    facts = {parameter: set(passed) for parameter, passed in given.items()}
    for info in inference.functions.values():
        for parameter, default in () if info.external else defaults(info):
            facts.setdefault(parameter, set()).add(inference.facts.get(default, UNKNOWN))
    shown = {p: class_for_all(passed) for p, passed in facts.items() if p.annotation is None}
    return {parameter: fact for parameter, fact in shown.items() if fact is not None}
