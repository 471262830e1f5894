"""Learning rates that a program sets and reads itself: ``optimizer.param_groups[0]["lr"] = lr``.

`optax.inject_hyperparams` keeps the rate in the optimizer's state: one for all, or one for each group, by its label.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.rule.optimizer_plan import rate_in_state
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket

from .made_optimizers import Optimizers
from .rate_forms import group_owner, new_rate
from .read_rates import ReadRates

NO_GROUPS = (
    "An nnx.Optimizer has no parameter groups: set_hyperparameter(optimizer, name, value) sets what was injected."
)
_SIGNS: dict[type[ast.operator], str] = {ast.Mult: "*", ast.Div: "/", ast.Add: "+", ast.Sub: "-"}


class GroupRates:
    """Puts handlers on statements and expressions that are about the learning rates of an optimizer."""

    def __init__(self, context: Context, optimizers: Optimizers) -> None:
        self.ctx = context
        self._read = ReadRates(context, optimizers, self._rate)
        self.listed = self._read.listed

    def read(self, node: ast.Subscript) -> None:
        """``optimizer.param_groups[0]["lr"]``."""
        if (owner := group_owner(node)) is not None and (label := self._label(node, owner)) is not None:
            self.ctx.plan.on_expression(node, lambda renderer: self._rate(renderer, owner, label))

    def count(self, node: ast.Call) -> None:
        """``len(optimizer.param_groups)``, which is written out."""
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(attr="param_groups", value=owner)]):
                numbers = {max(1, len(groups)) for groups in self._read.groups(owner, node)}
                if len(numbers) == 1:
                    (number,) = numbers
                    self.ctx.plan.on_expression(node, lambda renderer: Piece(str(number)))

    def write(self, node: ast.Assign | ast.AugAssign, target: ast.Subscript, value: ast.expr) -> bool:
        """``optimizer.param_groups[0]["lr"] = lr``; whether that is what is written."""
        owner = group_owner(target)
        sign = _sign(node)
        if owner is None or sign is None or (label := self._label(target, owner)) is None:
            return False
        self.ctx.plan.on_statement(node, lambda statements: self._set(node, owner, value, statements, sign, label))
        return True

    def loop(self, node: ast.For, leave: bool) -> None:
        """``for group in optimizer.param_groups: group["lr"] = lr``; loops that read rates, unless these are left."""
        match node:
            case ast.For(
                target=ast.Name(id=group),
                iter=ast.Attribute(attr="param_groups", value=owner) as walked,
                body=[ast.Assign() | ast.AugAssign() | ast.Expr() as body],
                orelse=[],
            ) if (value := new_rate(body, group)) is not None:
                self._set_all(node, walked, owner, group, body, value)
            case _ if not leave:
                self._read.loop(node)

    def _set_all(
        self, node: ast.For, walked: ast.Attribute, owner: ast.expr, group: str, body: ast.stmt, value: ast.expr
    ) -> None:
        reads = [n for n in symbols.walk(value) if isinstance(n, ast.Subscript) and ast.unparse(n) == f"{group}['lr']"]
        named = [n for n in symbols.walk(value) if isinstance(n, ast.Name) and n.id == group]
        labels, sign = self._read.labels(owner, node), _sign(body)
        if len(named) > len(reads) or sign is None or labels is None:
            self.ctx.plan.on_statement(node, lambda statements: self._refuse(node))
            return
        each = bool(labels) and (bool(reads) or bool(sign))
        label = group if each else ""
        for one in reads:
            self.ctx.plan.on_expression(one, lambda renderer: self._rate(renderer, owner, label))
        if each:
            self._read.walk_labels(walked, labels)
        place = body if each else node
        self.ctx.plan.on_statement(place, lambda statements: self._set(place, owner, value, statements, sign, label))

    def _refuse(self, node: ast.stmt) -> None:
        self.ctx.report.gap(node, "torch.optim.Optimizer.param_groups", "refused", NO_GROUPS)

    def _label(self, node: ast.Subscript, owner: ast.expr) -> str | None:
        """The label of the group that is asked for by its number; empty for the only one, None if it isn't known."""
        labels = self._read.labels(owner, node)
        if not labels:
            return None if labels is None else ""
        assert isinstance(node.value, ast.Subscript)
        number = ast.literal_eval(node.value.slice)
        return f'"{labels[number]}"' if -len(labels) <= number < len(labels) else None

    def _set(
        self, node: ast.stmt, owner: ast.expr, value: ast.expr, statements: StatementRewriter, sign: str, label: str
    ) -> None:
        text = statements.renderer.render(value)
        old = f"{self._rate(statements.renderer, owner, label).text} {sign} " if sign else ""
        new = old + bracket(text, ATOM) if old else text.text
        name = statements.renderer.render(owner).text
        last = f", {label}" if label else ""
        called = statements.renderer.need("set_hyperparameter")
        self.ctx.edits.replace(node, f'{called}({name}, "learning_rate", {new}{last})')
        self.ctx.report.count_converted()

    def _rate(self, renderer: ExpressionRenderer, owner: ast.expr, label: str) -> Piece:
        """The rate of an optimizer, or of the group that ``label`` says, as code."""
        name = bracket(renderer.render(owner), ATOM)
        self.ctx.report.count_converted()
        renderer.need("optax")
        several = any(len(groups) > 1 for groups in self._read.groups(owner, owner))
        return Piece(rate_in_state(f"{name}.opt_state", label, several))


def _sign(node: ast.stmt) -> str | None:
    """The operator of ``*=``; empty for a plain assignment, None for what has no form."""
    return _SIGNS.get(type(node.op)) if isinstance(node, ast.AugAssign) else ""
