"""``if isinstance(updater, torch.optim.Optimizer):`` in a training loop that is given optimizers only, or functions.

So ``if isinstance(self.scheduler, ReduceLROnPlateau):`` in a trainer that is only given that, or others. Where a file
that has gaps does so, it is read as if the branch that runs stood there alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.translate.inference.call_sites import facts_given
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import NONE, Fact, Object, Qual
from t2j_lsp.translate.rule.library import CLASSES
from t2j_lsp.translate.source.assignments import assigned
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Edits, Fragment, Rearranged, RearrangedText
from t2j_lsp.translate.source.text import Source

GOES = "{name} is {kind} wherever the file gives it one: the other branch goes"
_OPTIMIZER, _SCHEDULER = "optimizer", "scheduler"


def with_known_branches_taken(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without branches for what is never given; None where all may run, or no training is left."""
    source = inference.source
    lines = {gap.span.line for gap in gaps}
    if "isinstance" not in source.words or not lines:
        return None
    trains = any(gap.code == "training-loop" for gap in gaps)
    edits: Edits = []
    findings: list[Finding] = []
    for node in source.nodes:
        known = _is_optimizer(inference, node.test) if isinstance(node, ast.If) and trains else None
        kind = "an optimizer" if known else "a function"
        if known is None and isinstance(node, ast.If) and node.lineno in lines:
            known = _is_scheduler(inference, node.test)
            kind = "such a schedule" if known else "another schedule"
        if not isinstance(node, ast.If) or known is None:
            continue
        new = _taken(source, node, node.body if known else node.orelse)
        if new is None or any(start < edits[-1][1] for start, _, _ in new[:1] if edits):
            continue
        edits += new
        assert isinstance(node.test, ast.Call)
        name = ast.unparse(node.test.args[0])
        reason = GOES.format(name=name, kind=kind)
        findings.append(Finding(source.contract_span(node.test), name, "note", Severity.NOTE, reason))
    return RearrangedText((Rearranged.of(source.text, edits),), tuple(findings)) if edits else None


def _is_optimizer(inference: Inference, test: ast.expr) -> bool | None:
    """Whether a condition that asks if a value is an optimizer holds; None for others, and where it may or may not."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as value, cls], keywords=[]):
            asked = inference.fact(cls)
        case _:
            return None
    if not isinstance(asked, Qual) or asked.name not in CLASSES or CLASSES[asked.name].called != _OPTIMIZER:
        return None
    given = list(facts_given(inference, value))
    if given and all(isinstance(fact, Object) and fact.kind == _OPTIMIZER for fact in given):
        return True
    return False if given and all(isinstance(fact, Function) for fact in given) else None


def _is_scheduler(inference: Inference, test: ast.expr) -> bool | None:
    """Whether a condition that asks for a class of schedules holds; None for others, and where it may or may not."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() | ast.Attribute() as value, cls], keywords=[]):
            asked = inference.fact(cls)
        case _:
            return None
    known = CLASSES.get(asked.name) if isinstance(asked, Qual) else None
    if known is None or known.fact != Object(_SCHEDULER) or known.called is not None:
        return None
    given = list(_given(inference, value))
    schedules = [fact.name for fact in given if isinstance(fact, Object) and fact.kind == _SCHEDULER and fact.name]
    names = set(schedules)
    if not names or len(schedules) + given.count(NONE) < len(given):
        return None
    if isinstance(asked, Qual) and asked.name not in names:
        return False
    return True if len(names) == 1 and NONE not in given else None


def _given(inference: Inference, value: ast.expr) -> Iterator[Fact]:
    """What the file gives a variable, or an attribute of this name, wherever it does."""
    if not isinstance(value, ast.Attribute):
        yield from facts_given(inference, value)
        return
    for node in inference.source.nodes:
        for target, given in assigned(node):
            if isinstance(target, ast.Attribute) and target.attr == value.attr:
                yield from facts_given(inference, given)


def _taken(source: Source, node: ast.If, branch: list[ast.stmt]) -> Edits | None:
    """The branch in the place of the statement; None where it has no lines of its own, or a string goes over lines."""
    start, end = source.span(node)
    if not branch or not source.starts_line(node) or not source.starts_line(branch[0]) or source.text[start] == "e":
        return None
    if any(spans_lines(n) for s in branch for n in symbols.walk(s)):
        return None
    outer, inner = source.indent(node.lineno), source.indent(branch[0].lineno)
    first, last = source.starts[branch[0].lineno - 1], source.span(branch[-1])[1]
    if not inner.startswith(outer) or branch[0].lineno == node.lineno:
        return None
    edits: Edits = [(source.starts[node.lineno - 1], first, [])]
    for line in range(branch[0].lineno, (branch[-1].end_lineno or 0) + 1):
        at = source.starts[line - 1]
        if source.text.startswith(inner, at):
            edits.append((at + len(outer), at + len(inner), []))
    return [*edits, (last, end, [Fragment("", last, end)])] if end > last else edits
