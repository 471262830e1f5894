"""Whether a file has training code: no planner looks at one that has none."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Class, Fact, Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .data import DATASETS, PIPELINE

ATTRIBUTES = frozenset({"backward", "param_groups", "requires_grad", "requires_grad_"})
"""What training code reads or calls, whatever is known of its owner."""
KINDS = frozenset({"optimizer", "scheduler", "scaler", "loader", "dataset"})
LIBRARIES = ("torch.optim.", PIPELINE, *DATASETS)


def trains(inference: Inference) -> bool:
    """Whether a file has anything that a planner of training code may plan."""
    return (
        bool(inference.assumed)
        or any(isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES for node in inference.source.nodes)
        or _knows_training(inference.facts.values())
    )


def _knows_training(facts: Iterable[Fact]) -> bool:
    contexts = names_with(Trait.FORWARD) | names_with(Trait.AUTOCAST)
    for fact in facts:
        match fact:
            case Qual(name=name):
                if name in contexts or name.startswith(LIBRARIES):
                    return True
            case Object(kind=kind):
                if kind in KINDS:
                    return True
            case Class(info=info):
                if any(base.startswith(LIBRARIES) for base in info.torch_bases):
                    return True
    return False
