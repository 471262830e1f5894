"""Updates that are made before the gradients of another loss are added to what they left: a GAN that zeroes once.

``g_loss.backward(); opt_g.step()``, then ``d_loss.backward(); opt_d.step()``: the discriminator's step takes the
gradients of both losses. Where nothing between the two steps uses the generator, and no gradient flows there, its step
may as well be made just before the other: one step of both losses. Where a file has a gap for it, it is read so.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import bound_names, walk
from t2j_lsp.translate.inference.call_sites import function_run_by
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.training.program.step_calls import clip_of
from t2j_lsp.translate.training.steps.lost_gradients import LostGradients
from t2j_lsp.translate.training.steps.updated_modules import LEAKS

from .branch_zeroing import STEPS, ZEROS, asked_of_optimizer

_OF_TRAINING = ("optimizer", "scheduler", "scaler", "generator")


def with_updates_made_later(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such updates stand in front of the next; None if there are none."""
    source, edits = inference.source, Edits()
    if not any(gap.reason.endswith(LEAKS) for gap in gaps):
        return None
    for node in source.nodes:
        optimizer = asked_of_optimizer(inference, node, STEPS)
        if optimizer is None or not isinstance(node, ast.Expr) or not source.starts_line(node):
            continue
        update = _Postponed(inference, node, optimizer)
        later = update.place()
        if later is None or not source.starts_line(later):
            continue
        begin = update.begin()
        (start, _), (_, end), first = source.span(begin), source.span(node), source.span(later)[0]
        head, behind = source.starts[begin.lineno - 1], source.starts[node.end_lineno or 0]
        if source.text[end:behind].strip() or not source.starts_line(begin):
            continue
        text = f"{source.text[start:end]}\n{source.indent(later.lineno)}"
        edits += [(head, behind, []), (first, first, [Fragment(text, start, end)])]
    return RearrangedText.of(source.text, edits)


class _Postponed:
    """One update, and where it may be made instead."""

    def __init__(self, inference: Inference, step: ast.Expr, optimizer: str) -> None:
        self.inference = inference
        self.step = step
        self.optimizer = optimizer
        self.uncut = LostGradients(inference).uncut

    def place(self) -> ast.stmt | None:
        """The next update in the block, if this one may be made in front of it; else None."""
        block = self.inference.source.block_of(self.step) or []
        at = block.index(self.step) if self.step in block else len(block)
        front, behind = block[:at], block[at + 1 :]
        for index, later in enumerate(behind):
            other = asked_of_optimizer(self.inference, later, STEPS)
            if other is None:
                continue
            mine, others = self._modules(self.optimizer), self._modules(other)
            if not mine or not others or mine & others or not any(map(_loss, front)):
                return None
            return later if self._waits(front, behind[:index], mine, others) else None
        return None

    def begin(self) -> ast.stmt:
        """The update with the clipping of its gradients, which stands right in front of it."""
        block = self.inference.source.block_of(self.step) or []
        clips = itertools.takewhile(self._clips, reversed(block[: block.index(self.step)]))
        return [self.step, *clips][-1]

    def _clips(self, statement: ast.stmt) -> bool:
        call = statement.value if isinstance(statement, ast.Expr) else None
        fact = self.inference.fact(call.func) if isinstance(call, ast.Call) else None
        return isinstance(fact, Qual) and clip_of(fact.name) is not None

    def _modules(self, optimizer: str) -> set[str]:
        """What names the modules of an optimizer where it is made."""
        made = [
            node.value
            for node in self.inference.source.nodes
            if isinstance(node, ast.Assign) and optimizer in map(ast.unparse, node.targets)
        ]
        return {ast.unparse(n) for value in made for n in walk(value) if self._is_module(n)}

    def _is_module(self, node: ast.AST) -> bool:
        named = isinstance(node, ast.Name | ast.Attribute)
        fact = self.inference.fact(node)
        return named and is_module(fact) and not is_loss(fact)

    def _waits(self, front: Sequence[ast.stmt], between: Sequence[ast.stmt], mine: set[str], others: set[str]) -> bool:
        """Whether what stands between two updates uses nothing of the first, and no gradient flows to its modules."""
        losses = [loss for statement in between if (loss := _loss(statement)) is not None]
        if len(losses) != 1 or not isinstance(between[-1], ast.Expr):
            return False
        for node in (n for statement in between for n in walk(statement)):
            if isinstance(node, ast.Attribute) and node.attr == ZEROS:
                return False
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in mine | {self.optimizer}:
                return False
            if self._is_module(node) and ast.unparse(node) not in others:
                return False
            fact = self.inference.fact(node)
            if isinstance(fact, Object) and fact.kind in _OF_TRAINING:  # of which optimizer is not seen here
                return False
            if isinstance(node, ast.Call) and not is_module(self.inference.fact(node.func)):
                if function_run_by(self.inference, node) is not None:
                    return False
        reached = set(mine)
        for statement in (*front, *between):
            value = statement.value if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) else statement
            parts = walk(value) if value is statement else self.uncut(value) if value is not None else ()
            if any(ast.unparse(n) in reached for n in parts if isinstance(n, ast.Name | ast.Attribute)):
                reached |= bound_names([statement])
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                reached |= {ast.unparse(target) for target in targets}
        return not any(ast.unparse(n) in reached for n in self.uncut(losses[0]) if isinstance(n, ast.expr))


def _loss(statement: ast.stmt) -> ast.expr | None:
    """What a statement differentiates."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="backward", value=loss))):
            return loss
    return None
