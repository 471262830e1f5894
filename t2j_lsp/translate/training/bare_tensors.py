"""Optimizers of bare tensors: ``torch.optim.SGD([w, b], lr=0.1)``.

PyTorch's optimizer writes into the tensors. In JAX the step is given them with the state of optax, and gives both
back: ``w, b, opt_state = train_step(w, b, opt_state, x, y)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.storage import VIEWS
from t2j_lsp.translate.rule.definitions import Class, Instance, is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.pieces import Piece

from .groups import BARE_TENSORS
from .objects import Objects

KEPT = "It updates {name}, which has another name too: in JAX that keeps the array from before."
ELSEWHERE = "It updates {name}, which is bound in another function: pass it and return it."
AGAIN = "It updates {name}, which is more than one tensor: each has an optimizer of its own."
OTHERWISE = "It updates bare tensors, and is used for more than zero_grad() and step()."
_ARRAY = ("numpy", "cpu")
"""Methods of tensors that give the same storage, as arrays of numpy or where it is."""


class BareTensors:
    """Looks at what the program does with the tensors of an optimizer, and with the optimizer."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects

    def plan(self, call: ast.Call, parameters: ast.expr) -> OptimizerPlan:
        """The plan for an optimizer of bare tensors, whose state is made behind it."""
        names, reason = self.leaves(call, parameters)
        if not names:
            return OptimizerPlan(reason=reason or BARE_TENSORS, of_tensors=True)
        state = self.ctx.names.fresh("opt_state")
        made = self.ctx.source.parents[call]
        assert isinstance(made, ast.Assign)
        tree = names[0] if len(names) == 1 else f"({', '.join(names)})"
        line = f"{state} = {ast.unparse(made.targets[0])}.init({tree})"
        text = self.ctx.source.segment(parameters)
        self.ctx.plan.on_expression(parameters, lambda renderer: Piece(text))
        self.ctx.plan.on_statement(made, lambda statements: self._write(made, line, statements))
        return OptimizerPlan(of_tensors=True, leaves=names, state=state)

    def _write(self, node: ast.Assign, line: str, statements: StatementRewriter) -> None:
        statements.dispatch(node)
        self.ctx.edits.insert_after(node, [line])

    def leaves(self, call: ast.Call, parameters: ast.expr) -> tuple[tuple[str, ...], str]:
        """The tensors that an optimizer updates, all of them variables of its scope; else none, and why."""
        names = self._names(parameters)
        made = self.ctx.source.parents.get(call)
        if not names or not isinstance(made, ast.Assign) or not isinstance(made.targets[0], ast.Name):
            return (), ""
        scope = self.objects.scope(call)
        for name in names:
            if self.objects.home(name, scope) != scope:
                return (), ELSEWHERE.format(name=name)
            if len(self.objects.assigned(name, scope)) != 1 and not self._is_unpacked(name, call):
                return (), AGAIN.format(name=name)
            if any(self._is_kept(node) for node in self._reads(name, call)):
                return (), KEPT.format(name=name)
        if not all(self._is_step(node) for node in self._reads(made.targets[0].id, call)):
            return (), OTHERWISE
        return tuple(names), ""

    def _names(self, node: ast.expr) -> list[str]:
        """The names in a list of tensors that is written out."""
        elements = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        names = [e.id for e in elements if isinstance(e, ast.Name) and self._is_plain(e)]
        return names if len(names) == len(elements) == len(set(names)) else []

    def _is_plain(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, Tensor) and not fact.variable

    def _reads(self, name: str, call: ast.Call) -> Iterator[ast.Name]:
        """Where a name of the optimizer's scope is read, but for the optimizer's call."""
        home, own = self.objects.home(name, self.objects.scope(call)), set(symbols.walk(call))
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node not in own:
                if self.objects.home(name, self.objects.scope(node)) == home:
                    yield node

    def _is_unpacked(self, name: str, call: ast.Call) -> bool:
        """Whether a name is bound once in its scope, to a part of what a call gives: ``params, state = init(key)``."""
        home = self.objects.scope(call)
        bound = [n for n in self.ctx.source.nodes if isinstance(n, ast.Name) and n.id == name]
        bound = [n for n in bound if isinstance(n.ctx, ast.Store) and self.objects.scope(n) == home]
        targets = self.ctx.source.parents[bound[0]] if len(bound) == 1 else None
        made = self.ctx.source.parents[targets] if isinstance(targets, ast.Tuple) else None
        return isinstance(made, ast.Assign) and isinstance(made.value, ast.Call)

    def _is_kept(self, node: ast.expr) -> bool:
        """Whether the tensor, or what shares its storage, gets another name, or goes into a container or an object."""
        place: ast.AST = node
        parent = self.ctx.source.parents.get(place)
        while (
            isinstance(parent, ast.Attribute)
            and parent.attr in (*VIEWS, *_ARRAY)
            or (isinstance(parent, ast.Call) and parent.func is place and isinstance(place, ast.Attribute))
        ):
            place, parent = parent, self.ctx.source.parents.get(parent)
        match parent:
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.Return():
                return not (isinstance(parent, ast.Return) and place is not node)
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.Starred() | ast.Lambda():
                return True
            case ast.Call(func=ast.Attribute(attr="append" | "extend" | "add")):
                return True
            case ast.Call():
                called = self.ctx.fact(parent.func)
                return isinstance(called, Class | Instance) and not is_module(called)
        return False

    def _is_step(self, node: ast.expr) -> bool:
        """Whether an optimizer is asked to make a step, or to clear gradients."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in ("zero_grad", "step")
