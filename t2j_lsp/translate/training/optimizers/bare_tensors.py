"""Optimizers of bare tensors: ``torch.optim.SGD([w, b], lr=0.1)``.

PyTorch's optimizer writes into the tensors. In JAX the step is given them with the state of optax, and gives both
back: ``w, b, opt_state = train_step(w, b, opt_state, x, y)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.given import NOTHING_GIVEN
from t2j_lsp.translate.training.program.objects import Objects

from .groups import BARE_TENSORS
from .held_tensors import AGAIN, ELSEWHERE, KEPT, NO_FLAG, OTHERWISE, HeldTensors
from .listed_leaves import ListedLeaves
from .other_names import OtherNames


class BareTensors:
    """Looks at what the program does with the tensors of an optimizer, and with the optimizer."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.other_names = OtherNames(context, objects)
        self.held = HeldTensors(context, objects)

    def plan(self, call: ast.Call, parameters: ast.expr) -> OptimizerPlan:
        """The plan for an optimizer of bare tensors, whose state is made behind it."""
        names, reason = self.leaves(call, parameters)
        if not names:
            return OptimizerPlan(reason=reason or BARE_TENSORS, of_tensors=True)
        made = self.ctx.source.parents[call]
        assert isinstance(made, ast.Assign)
        held = made.targets[0]
        state = self.held.state(held) if isinstance(held, ast.Attribute) else self.ctx.names.fresh("opt_state")
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
        made = self.ctx.source.parents.get(call)
        if isinstance(made, ast.Assign) and isinstance(made.targets[0], ast.Attribute) and len(made.targets) == 1:
            return self.held.leaves(call, parameters, made.targets[0])
        listed = ListedLeaves(self.ctx, self.objects, self.objects.scope(call))
        names = listed.names(parameters)
        if not names or not isinstance(made, ast.Assign) or not isinstance(made.targets[0], ast.Name):
            return (), ""
        scope = self.objects.scope(call)
        for name in names:
            if self.objects.home(name, scope) != scope:
                return (), ELSEWHERE.format(name=name)
            if len(self.objects.assigned(name, scope)) != 1 and not self._is_unpacked(name, call):
                return (), AGAIN.format(name=name)
            reads = [node for node in self._reads(name, call) if node not in listed.made]
            kept = (
                self.other_names.keeps(node)
                and not self._ends_before_step(node, made.targets[0], call)
                and not self._is_behind_steps(node, made.targets[0], call)
                for node in reads
            )
            if any(kept) or listed.values.share(name):
                return (), KEPT.format(name=name)
            if self.ctx.source.given is NOTHING_GIVEN and not listed.values.take_gradients(name):
                return (), NO_FLAG.format(name=name)
        for one in listed.lists:
            if any(listed.reads_what_changes(node) for node in self._reads(one.id, call) if node not in listed.made):
                return (), KEPT.format(name=names[0])
        if not all(self._is_step(node) for node in self._reads(made.targets[0].id, call)):
            return (), OTHERWISE
        return tuple(names), ""

    def _reads(self, name: str, call: ast.Call) -> Iterator[ast.Name]:
        """Where a name of the optimizer's scope is read, but for the optimizer's call."""
        home, own = self.objects.home(name, self.objects.scope(call)), set(symbols.walk(call))
        return (n for n in self.objects.named(name, home) if isinstance(n.ctx, ast.Load) and n not in own)

    def _is_unpacked(self, name: str, call: ast.Call) -> bool:
        """Whether a name is bound once in its scope, to a part of what a call or comprehension gives."""
        home = self.objects.scope(call)
        named = self.ctx.source.names.get(name, ())
        bound = [n for n in named if isinstance(n.ctx, ast.Store) and self.objects.scope(n) == home]
        targets = self.ctx.source.parents[bound[0]] if len(bound) == 1 else None
        made = self.ctx.source.parents[targets] if isinstance(targets, ast.Tuple) else None
        return isinstance(made, ast.Assign) and isinstance(made.value, ast.Call | ast.ListComp)

    def _ends_before_step(self, node: ast.expr, optimizer: ast.Name, call: ast.Call) -> bool:
        """Whether another name of a tensor is read in front of the next step alone, in the block of the only step."""
        source = self.ctx.source
        steps = [n for n in self._reads(optimizer.id, call) if getattr(source.parents[n], "attr", "") == "step"]
        around = (
            [at for at in symbols.with_ancestors(steps[0], source.parents) if isinstance(at, ast.stmt)] if steps else []
        )
        block = source.block_of(around[0]) if len(steps) == 1 else None
        match source.parents.get(node):
            case ast.Assign(targets=[ast.Name(id=name)]) as given if block is not None:
                places = [_place(n, block, source.parents) for n in (given, steps[0], *source.names[name])]
                known = [at for at in places if at is not None]
                first, last = min(known, default=0), max(known, default=0)
                return known == places and known[:2] == [first, last] and known.count(last) == 1
        return False

    def _is_behind_steps(self, node: ast.expr, optimizer: ast.Name, call: ast.Call) -> bool:
        """Whether another name is given behind the statements with all steps, in the block of the optimizer."""
        source, steps = self.ctx.source, list(self._reads(optimizer.id, call))
        made = source.parents.get(call)
        block = source.block_of(made) if isinstance(made, ast.Assign) else None
        if block is None or any(isinstance(at, ast.For | ast.While) for at in symbols.ancestors(call, source.parents)):
            return False
        places = [_place(one, block, source.parents) for one in (node, *steps)]
        known = [at for at in places if at is not None]
        return known == places and all(known[0] > at for at in known[1:])

    def _is_step(self, node: ast.expr) -> bool:
        """Whether an optimizer is asked to make a step, or to clear gradients."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in ("zero_grad", "step")


def _place(node: ast.AST, block: Sequence[ast.stmt], parents: Mapping[ast.AST, ast.AST]) -> int | None:
    """The position of the statement of a block that a node stands in; None if it stands in none."""
    places = {statement: place for place, statement in enumerate(block)}
    around = (at for at in symbols.with_ancestors(node, parents) if isinstance(at, ast.stmt))
    return next((places[at] for at in around if at in places), None)
