"""Learning rates that are read group by group: ``for group in optimizer.param_groups: return group["lr"]``.

The groups of an optimizer that keeps their rates apart are known by their labels, and are walked by these.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.rule.optimizer_plan import Group
from t2j_lsp.translate.rule.pieces import ATOM, Piece

from .made_optimizers import Optimizers

Rate = Callable[[ExpressionRenderer, ast.expr, str], Piece]
"""The learning rate of the optimizer that an expression is, or of its group of a label."""


class ReadRates:
    """Takes loops over the groups of optimizers where nothing but their learning rates is read."""

    def __init__(self, context: Context, optimizers: Optimizers, rate: Rate) -> None:
        self.ctx = context
        self.optimizers = optimizers
        self.rate = rate

    def loop(self, node: ast.For) -> None:
        """The body alone, or the rate of the first group, of however many, where that is returned at once."""
        match node:
            case ast.For(target=ast.Name(id=group), iter=ast.Attribute(attr="param_groups", value=owner), orelse=[]):
                pass
            case _:
                return
        inner = [n for statement in node.body for n in symbols.walk(statement)]
        if any(isinstance(n, ast.Break | ast.Continue | ast.Yield | ast.YieldFrom | ast.Await) for n in inner):
            return
        reads = _reads(node.body, group)
        if not reads or self._is_read_behind(node, group):
            return
        if self._has_one_group(owner, node) or isinstance(node.body[0], ast.Return) and not self._made(owner, node):
            self._take(reads, owner)
            self.ctx.plan.on_statement(node, lambda statements: self._unwrap(node, statements))
        elif labels := self.labels(owner, node):
            self._take(reads, owner, group)
            self.walk_labels(node.iter, labels)

    def listed(self, node: ast.ListComp) -> None:
        """``[group["lr"] for group in optimizer.param_groups]`` is a list of one."""
        match node.generators:
            case [
                ast.comprehension(
                    target=ast.Name(id=group), iter=ast.Attribute(attr="param_groups", value=owner), ifs=[], is_async=0
                )
            ]:
                reads = _reads([node.elt], group)
                if reads and self._has_one_group(owner, node):
                    self._take(reads, owner)
                    self.ctx.plan.on_expression(node, lambda r: Piece(f"[{r.render(node.elt).text}]"))
                elif reads and (labels := self.labels(owner, node)):
                    self._take(reads, owner, group)
                    self.walk_labels(node.generators[0].iter, labels)

    def labels(self, owner: ast.expr, place: ast.AST) -> tuple[str, ...] | None:
        """The labels of the groups whose rates an optimizer keeps apart; none for one rate, None if that isn't sure."""
        labels = {tuple(g.label for g in groups) for groups in self.groups(owner, place, apart=True)}
        return None if len(labels) > 1 else labels.pop() if labels else ()

    def groups(self, owner: ast.expr, place: ast.AST, apart: bool = False) -> Iterator[Sequence[Group]]:
        """The groups of all that an optimizer may be, none for a single one; only those with rates ``apart``."""
        for made in self._made(owner, place):
            plan = self.ctx.plan.optimizers[made]
            yield [g for g in plan.groups if not g.frozen] if plan.apart or not apart else []

    def walk_labels(self, walked: ast.expr, labels: Sequence[str]) -> None:
        """Has a loop over the groups walk their labels."""
        text = ", ".join(f'"{label}"' for label in labels)
        self.ctx.plan.on_expression(walked, lambda renderer: Piece(f"({text})", ATOM))

    def _take(self, reads: Sequence[ast.Subscript], owner: ast.expr, label: str = "") -> None:
        for one in reads:
            self.ctx.plan.on_expression(one, lambda renderer: self.rate(renderer, owner, label))

    def _unwrap(self, node: ast.For, statements: StatementRewriter) -> None:
        first = node.body[0]
        if first.lineno == node.lineno:
            self.ctx.edits.add(self.ctx.source.span(node)[0], self.ctx.source.span(first)[0], "")
            statements.block(node.body)
        else:
            statements.unwrap(node, node.body)

    def _made(self, owner: ast.expr, place: ast.AST) -> list[ast.Call]:
        return self.optimizers.optimizers_of(owner, place)

    def _has_one_group(self, owner: ast.expr, place: ast.AST) -> bool:
        plans = [self.ctx.plan.optimizers[one] for one in self._made(owner, place)]
        return bool(plans) and not any(plan.groups or plan.of_tensors or plan.reason for plan in plans)

    def _is_read_behind(self, node: ast.For, group: str) -> bool:
        """Whether the name is read where it may be the loop's: anywhere but in what gives it anew."""
        inside = set(map(id, symbols.walk(node)))
        for other in self.ctx.source.nodes:
            if isinstance(other, ast.For | ast.comprehension) and ast.unparse(other.target) == group:
                parts = [other] if isinstance(other, ast.For) else [self.ctx.source.parents[other]]
                inside |= {id(n) for part in parts for n in symbols.walk(part)}
        return any(
            isinstance(n, ast.Name) and n.id == group and isinstance(n.ctx, ast.Load) and id(n) not in inside
            for n in self.ctx.source.nodes
        )


def _reads(parts: Sequence[ast.AST], group: str) -> list[ast.Subscript]:
    """The reads of a group's learning rate; none where the group is used in any other way."""
    nodes = [n for part in parts for n in symbols.walk(part)]
    reads = [
        n
        for n in nodes
        if isinstance(n, ast.Subscript)
        and isinstance(n.ctx, ast.Load)
        and isinstance(n.value, ast.Name)
        and n.value.id == group
        and isinstance(n.slice, ast.Constant)
        and n.slice.value == "lr"
    ]
    names = [n for n in nodes if isinstance(n, ast.Name) and n.id == group]
    return reads if len(names) == len(reads) else []
