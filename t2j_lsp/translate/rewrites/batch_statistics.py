"""Normalisation that also keeps running statistics: ``F.batch_norm(x, self.mean, self.var, training=self.training)``.

In training PyTorch's function writes into the statistics that it is given. Where a file has gaps at such a call, it is
read as if it were in two steps: first the statistics are updated by those of the batch, then a function of copies is
called, which nobody sees written. In training the function doesn't read them, and otherwise they aren't updated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import ancestors, walk
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.evaluation import evaluated_once
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

_OF_BATCHES = names_with(Trait.KEEPS_STATISTICS)
_EACH_IMAGE = "use_input_stats"
"""What a function that averages the statistics of single images calls the argument that is ``training`` elsewhere."""
_PLAIN = ast.Name | ast.Attribute | ast.Constant | ast.BoolOp | ast.UnaryOp | ast.Compare | ast.operator | ast.cmpop
_ASKED = _PLAIN | ast.boolop | ast.unaryop | ast.expr_context
"""What may be evaluated twice."""


@dataclass(frozen=True)
class _Statistic:
    """A statistic that is updated, and when it is there at all."""

    held: ast.Name | ast.Attribute
    condition: str = ""


def with_statistics_updated_first(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such calls stand behind the update; None if there are none, or everything converts."""
    lines = {gap.span.line for gap in gaps if gap.name in _OF_BATCHES}
    edits: Edits = []
    for node in inference.source.nodes if lines else ():
        if isinstance(node, ast.Call) and isinstance(fact := inference.facts.get(node.func), Qual):
            if fact.name in _OF_BATCHES and node.lineno in lines:
                edits += _in_two_steps(inference, node, fact.name)
    return RearrangedText.of(inference.source.text, edits)


def _in_two_steps(inference: Inference, call: ast.Call, name: str) -> Edits:
    source, rule = inference.source, REGISTRY.get(name)
    bound = bind(rule.signatures[0], call, None) if rule is not None else None
    statement = next(one for one in ancestors(call, source.parents) if isinstance(one, ast.stmt))
    if rule is None or not bound or not _may_stand_behind(source, call, statement):
        return []
    given = {one: values[0] for one, values in bound.items() if len(values) == 1}
    mean, var = (_statistic(given.get(one)) for one in ("running_mean", "running_var"))
    of_images = _EACH_IMAGE in rule.signatures[0].by_name
    asked, batch = given.get(_EACH_IMAGE if of_images else "training"), given.get("input")
    momentum = given.get("momentum")
    if mean is None or var is None or mean.condition != var.condition:
        return []
    plain = all(one is None or _is_plain(one) for one in (asked, momentum))
    if not plain or not isinstance(batch, ast.Name | ast.Attribute):
        return []
    fact = inference.fact(batch)
    means = _of_batch(of_images, source.segment(batch), fact.rank if isinstance(fact, Tensor) else None)
    rate = source.segment(momentum) if momentum is not None else "0.1"
    updates = [f"{source.segment(one.held)}.lerp_({to}, {rate})" for one, to in zip((mean, var), means, strict=True)]
    condition = source.segment(asked) if asked is not None else str(of_images)
    conditions = [_bracketed(one) for one in (condition, _there(inference, mean)) if one not in ("", "True")]
    text = _indented(updates, conditions, source.newline + source.indent(statement.lineno))
    start, end = source.span(statement)[0], source.span(call)[1]
    edits: Edits = [(start, start, [Fragment(text, start, end)])]
    for statistic in (mean, var):
        place, held = source.span(statistic.held), source.segment(statistic.held)
        unsure = not statistic.condition and _there(inference, statistic)
        copy = f"({held}.clone() if {unsure} else None)" if unsure else f"{held}.clone()"
        edits.append((*place, [Fragment(copy, *place)]))
    return edits


def _indented(updates: Sequence[str], conditions: Sequence[str], line: str) -> str:
    """The updates as statements under their conditions; ``line`` begins one."""
    inner = f"{line}    " if conditions else line
    head = f"if {' and '.join(conditions)}:{inner}" if conditions else ""
    return head + inner.join(updates) + line


def _may_stand_behind(source: Source, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether what is put in front of the statement happens just before the call, whenever the statement runs."""
    simple = isinstance(statement, ast.Return | ast.Assign | ast.AnnAssign | ast.Expr)
    return simple and source.starts_line(statement) and evaluated_once(call, source.parents)


def _statistic(node: ast.expr | None) -> _Statistic | None:
    """``self.running_mean``, and ``self.running_mean if self.track else None``."""
    match node:
        case ast.Name() | ast.Attribute():
            return _Statistic(node)
        case ast.IfExp(test=test, body=ast.Name() | ast.Attribute() as held, orelse=ast.Constant(value=None)):
            return _Statistic(held, ast.unparse(test)) if _is_plain(test) else None
    return None


def _there(inference: Inference, statistic: _Statistic) -> str:
    """The condition under which a statistic is an array."""
    held = statistic.held
    owner = inference.fact(held.value) if isinstance(held, ast.Attribute) else None
    nullable = isinstance(owner, Instance) and isinstance(held, ast.Attribute) and owner.cls.info.may_be_none(held.attr)
    if statistic.condition or isinstance(inference.fact(held), Tensor) and not nullable:
        return statistic.condition
    return f"{inference.source.segment(held)} is not None"


def _is_plain(node: ast.expr) -> bool:
    return all(isinstance(one, _ASKED) for one in walk(node))


def _bracketed(condition: str) -> str:
    return f"({condition})" if " or " in condition or " if " in condition else condition


def _of_batch(of_images: bool, tensor: str, rank: int | None) -> Sequence[str]:
    """The mean and the unbiased variance of each channel."""
    batch = f"{tensor}.detach()"
    if of_images:
        return f"{batch}.flatten(2).mean(2).mean(0)", f"{batch}.flatten(2).var(2).mean(0)"
    if rank is not None and rank > 1:
        axes = "0" if rank == 2 else f"({', '.join(str(axis) for axis in range(rank) if axis != 1)})"
        return f"{batch}.mean({axes})", f"{batch}.var({axes})"
    others = f"[0, *range(2, {tensor}.dim())]"
    return f"{batch}.mean({others})", f"{batch}.var({others})"
