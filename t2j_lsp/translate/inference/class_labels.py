"""Which calls of losses are given class labels, and of how many axes: elsewhere they may be probabilities."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.record import REGISTRY

from .batch_sources import BatchSources
from .file import Inference

Labels = Mapping[str, int | None]
"""By what they are called, functions whose every call gets class labels, and the axes of these where they are known."""
LOSSES = ("cross_entropy", "nll_loss")
"""The helpers that take class labels."""
_WHOLE = re.compile(r"u?int\d*|long|short")
"""Dtypes of whole numbers."""


def class_labels(inference: Inference, helpers: Iterable[str]) -> Labels:
    """What is known of the targets of the losses among some helpers."""
    if not any(name in LOSSES for name in helpers):
        return {}
    by_helper: dict[str, set[int | None]] = {}
    others: set[str] = set()
    sources = BatchSources(inference)
    for node in inference.source.nodes:
        if not isinstance(node, ast.Call):
            continue
        fact = inference.facts.get(node.func, UNKNOWN)
        loss = _loss(fact)
        name = loss if isinstance(fact, Qual) or not _name(node.func) else _name(node.func)
        rank = _labels(inference, node, sources) if loss else ()
        if rank:
            by_helper.setdefault(name, set()).update(rank)
        else:
            others.add(name)
    return {
        name: next(iter(ranks)) if len(ranks) == 1 else None for name, ranks in by_helper.items() if name not in others
    }


def _loss(fact: Fact) -> str:
    """The helper that a loss of PyTorch's becomes."""
    made = LAYERS[fact.name].jax if isinstance(fact, Layer) and fact.name in LAYERS else ""
    rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
    made = rule.value or "" if rule is not None else made
    return made if made in LOSSES else ""


def _name(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _labels(inference: Inference, call: ast.Call, sources: BatchSources) -> tuple[int | None, ...]:
    """The axes of the class labels that a call of a loss is given; nothing where it may be given probabilities."""
    given = {k.arg: k.value for k in call.keywords}
    values = [*call.args[:2], *(given[name] for name in ("input", "target")[len(call.args) :] if name in given)]
    if len(values) != 2 or any(isinstance(value, ast.Starred) for value in values):
        return ()
    match [inference.facts.get(value, UNKNOWN) for value in values]:
        case [_, Tensor(rank=rank) as target] if _is_whole(target):
            return (rank,)
        case [Tensor(rank=int() as scores, sure=True), Tensor(rank=int() as rank, sure=True)] if rank != scores:
            return (rank,)
    cut = sources.of(values[1])
    return tuple(one.rank for one in cut) if all(map(_is_whole, cut)) else ()


def _is_whole(target: Tensor) -> bool:
    """Whether a tensor surely has whole numbers."""
    return target.sure and _WHOLE.fullmatch((target.dtype or "").rpartition(".")[2]) is not None
