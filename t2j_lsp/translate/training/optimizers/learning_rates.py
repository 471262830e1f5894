"""The learning rates that optimizers start with, where the schedules that change them can say so."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.optimizer_plan import Group, rate_in_state
from t2j_lsp.translate.rule.record import rule_of
from t2j_lsp.translate.training.program.objects import Objects


class LearningRates:
    """Reads them off the constructors of optimizers."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects

    def of(self, made: list[ast.Call], call: ast.Call) -> str:
        """The learning rate that the optimizer starts with, where it can be written at the scheduler."""
        texts = {self._rate_text(m) for m in made}
        text = texts.pop() if len(texts) == 1 else ""
        return text if text and self._visible(text, made, call) else ""

    def held(self, owner: ast.expr, made: list[ast.Call]) -> str:
        """The learning rate that the optimizer has, as read out of its state."""
        several = any(len(self.ctx.plan.optimizers[m].groups) > 1 for m in made)
        return rate_in_state(f"{ast.unparse(owner)}.opt_state", "", several)

    def of_groups(self, made: list[ast.Call], call: ast.Call) -> tuple[tuple[str, str], ...]:
        """The learning rates of the groups by their labels; empty where they can't be written at the scheduler."""
        if len(made) != 1:
            return ()
        rates = []
        for group in self.ctx.plan.optimizers[made[0]].groups:
            if not group.frozen:
                text = self._rate_text(made[0], group)
                if not text or not self._visible(text, made, call) or self.changes_later(text, call):
                    return ()
                rates.append((group.label, text))
        return tuple(rates)

    def _rate_text(self, made: ast.Call, group: Group | None = None) -> str:
        groups = self.ctx.plan.optimizers[made].groups
        if group is None and len(groups) == 1:
            group = groups[0]
        given = argument(made, 1, "lr") if group is None else group.options.get("lr", argument(made, 1, "lr"))
        if given is None:
            rule = rule_of(self.ctx.fact(made.func))
            default = rule.signatures[0].by_name.get("lr") if rule is not None else None
            return default.default or "" if default is not None and not _starred(made) else ""
        plain = (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load)
        return ast.unparse(given) if all(isinstance(n, plain) for n in symbols.walk(given)) else ""

    def _visible(self, text: str, made: list[ast.Call], call: ast.Call) -> bool:
        """Whether an expression still has its value where the scheduler is made."""
        names = {n.id for n in symbols.walk(ast.parse(text)) if isinstance(n, ast.Name)}
        if not names:
            return True
        scope = self.objects.scope(call)
        if any(self.objects.scope(m) != scope for m in made):
            return False
        first, last = min(m.lineno for m in made), call.lineno
        for node in symbols.walk(scope.node or self.ctx.source.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
                if first <= node.lineno <= last:
                    return False
        return True

    def changes_later(self, text: str, call: ast.Call) -> bool:
        """Whether something in an expression gets another value than it has where a scheduler is made."""
        read = [n for n in symbols.walk(ast.parse(text)) if isinstance(n, ast.Name | ast.Attribute)]
        again = [at for at in ancestors(call, self.ctx.source.parents) if isinstance(at, ast.For | ast.While)]
        first = again[-1].lineno if again else call.lineno
        return any(
            node.lineno > first and not isinstance(node.ctx, ast.Load) and self._is_same_variable(node, call)
            for one in read
            for node in self._spelled(one)
        )

    def _spelled(self, one: ast.Name | ast.Attribute) -> Iterable[ast.Name | ast.Attribute]:
        """The places of the file that are written as a name or attribute."""
        if isinstance(one, ast.Name):
            return self.ctx.source.names.get(one.id, ())
        return (n for n in self.ctx.source.attributes.get(one.attr, ()) if ast.unparse(n) == ast.unparse(one))

    def _is_same_variable(self, node: ast.Name | ast.Attribute, place: ast.AST) -> bool:
        """Whether a name means at a place what it means here; an attribute may be the same anywhere."""
        if isinstance(node, ast.Attribute):
            return True
        home = self.objects.home
        return home(node.id, self.objects.scope(node)) == home(node.id, self.objects.scope(place))


def _starred(call: ast.Call) -> bool:
    return any(k.arg is None for k in call.keywords)
