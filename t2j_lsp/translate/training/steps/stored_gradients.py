"""Training by hand: a program that reads ``.grad`` and changes its tensors or parameters itself, without an optimizer.

PyTorch stores the gradients of a backward pass in the tensors. In JAX the compiled function that computes the loss
gives them back, and what reads ``w.grad`` reads that value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.rule.definitions import Class, is_module
from t2j_lsp.translate.rule.facts import Partial, Tensor
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.positions import position
from t2j_lsp.translate.training.data.data_writes import is_seen_outside, write_data, written_through_data
from t2j_lsp.translate.training.program.gradient_forms import asked, changes, cleared, is_name
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import Item, Phase, Refused, StepCall
from t2j_lsp.translate.training.program.update_functions import has_other_name, new_tensors, update_call, write_update

from .accumulated import STORED, AccumulatedTraining, clipped
from .fresh_leaves import FreshLeaves
from .hand_steps import HandStep, changed, write_out_lists
from .region import ABOUT_ZEROING
from .update import NOT_ZEROED, Optimized, Update
from .updates import Updates
from .walked_lists import HELD, WalkedLists


class StoredGradients:
    """The gradients that code reads, in the statements ``body`` of one scope."""

    def __init__(
        self,
        context: Context,
        objects: Objects,
        scope: VariableScope,
        updates: Updates,
        body: Sequence[ast.stmt],
    ) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.updates = updates
        self.body = body
        self.lists = WalkedLists(context, objects, scope)

    def plan(self, one: AccumulatedTraining, phase: Phase) -> None:
        """An update that only computes gradients, and what reads them. Raises Refused."""
        loops = [training for node in self._statements() if (training := self._loop(node)) is not None]
        inside = {n for loop in loops for n in symbols.walk(loop.node)}
        direct = [n for n in self._gradients() if n not in inside]
        clearing = [s for s in self._statements() if s not in inside and cleared(s) is not None]
        direct.sort(key=position)
        names = [self._leaf(n.value) for n in direct]
        lists = [loop for loop in loops if not is_module(self.ctx.fact(loop.walked))]
        modules = list(dict.fromkeys(ast.unparse(x.walked) for x in loops if x not in lists))
        if modules and (names or lists) or len(modules) > 1 or not (modules or names or lists):
            raise Refused(STORED)
        held = [name for loop in lists for name in self.lists.elements(loop.walked)]
        leaves = modules or list(dict.fromkeys([*held, *names]))
        self._check_cleared(one, phase, leaves, clearing, loops)
        self._check_places(one, phase, [*direct, *(loop.place for loop in loops)])
        grads = self._fresh(modules, leaves, bool(names) or len(lists) > 0 and set(held) != set(leaves))
        update = self.updates.stored(one.items, phase, Optimized("", tuple(leaves)), ", ".join(grads.values()))
        if not modules and len(grads) > 1:
            update.grads = f"({update.grads})"
        one.updates.append(update)
        clip_stored(self.ctx, self.updates, one, update)
        write_out_lists(self.objects, one, phase, lists, self.lists.names)
        self._read(direct, clearing, loops, leaves, grads)

    def calls_updates(self) -> bool:
        """Whether the scope calls a function that works on the gradients in its tensors."""
        return any(
            isinstance(n, ast.Attribute) and n.attr == "grad"
            for s in self._statements()
            if (call := update_call(self.ctx, s)) is not None
            for n in symbols.walk(call.loop)
        )

    # --- finding --------------------------------------------------------------------------------------------------

    def _statements(self) -> Iterator[ast.stmt]:
        """Every statement of the scope."""
        for block in symbols.blocks(self.body):
            yield from block

    def _gradients(self) -> list[ast.Attribute]:
        """Every ``x.grad`` of the scope."""
        own = {
            n for s in self._statements() if not isinstance(s, ast.FunctionDef | ast.ClassDef) for n in symbols.walk(s)
        }
        return [
            n
            for n in own
            if isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(self.ctx.fact(n.value), Tensor)
        ]

    def _leaf(self, node: ast.expr) -> str:
        """The variable of a tensor whose gradient is read: one that is made to have gradients. Raises Refused."""
        fact = self.ctx.fact(node)
        if not isinstance(node, ast.Name) or not isinstance(fact, Tensor) or fact.variable:
            raise Refused(STORED)
        if not self.lists.ask_gradients(node.id):
            raise Refused(STORED)
        function = self.scope.function
        if function is not None and node.id not in self.ctx.source.symbols.bound(function.node):
            if not self._is_alone(node.id):
                raise Refused(f"It changes {node.id}, which is bound outside of the function: pass it and return it.")
            if self.ctx.source.symbols.is_free(node.id, scopes_around(node, self.ctx.source.parents)):
                self.ctx.plan.rebound.setdefault(function.node, set()).add(node.id)
        return node.id

    def _is_alone(self, name: str) -> bool:
        """Whether a tensor of the module level has no other name, and is in no container."""
        if self.objects.home(name, self.scope).function is not None:
            return False
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                parent = self.ctx.source.parents.get(node)
                if not isinstance(parent, ast.BinOp | ast.Attribute | ast.Compare | ast.Subscript | ast.Call):
                    return False
                if isinstance(parent, ast.Call) and isinstance(self.ctx.fact(parent.func), Class | Partial):
                    return False  # an object may keep it
        return True

    def _loop(self, node: ast.stmt) -> HandStep | None:
        """A loop over tensors or parameters that reads or clears their gradients. Raises Refused."""
        place, call = node, update_call(self.ctx, node)
        node = node if call is None else call.loop
        reads = [n for n in symbols.walk(node) if isinstance(n, ast.Attribute) and n.attr == "grad"]
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            return None
        if not any(is_name(n.value, node.target.id) for n in reads):
            return None
        name = node.target.id
        walked = node.iter if call is None else call.tensors
        match walked:
            case ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[], keywords=[]):
                walked = module
        in_module = is_module(self.ctx.fact(walked))
        if not in_module and self.lists.names(walked) is None or node.orelse or in_module and call is not None:
            raise Refused(STORED)
        body = [s for outer in node.body for s in asked(outer, name)]
        changing = [s for s in body if cleared(s) is None]
        if len(changing) > 1 or changing and not changes(changing[0], name) or call is not None and not changing:
            raise Refused(STORED)
        return HandStep(place, node, name, walked, changing[0] if changing else None, len(changing) < len(body), call)

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check_cleared(
        self,
        one: AccumulatedTraining,
        phase: Phase,
        leaves: list[str],
        clearing: list[ast.stmt],
        loops: list[HandStep],
    ) -> None:
        """Raises Refused unless all gradients are cleared each time; marks what does it in front of the pass."""
        cleared_names: set[str] = set()
        for item in one.items:
            step_call = item.step_call
            if step_call is not None and step_call.kind == "zero":
                cleared_names.add(ast.unparse(step_call.subject))
        for statement, zeroed in self._zeroed_inside(one):
            cleared_names.add(ast.unparse(zeroed))
            self.ctx.plan.on_statement(statement, lambda _, node=statement: self._delete(node))  # type: ignore[misc]
        for statement in clearing:
            subject = cleared(statement)
            assert subject is not None
            if self._always_runs(statement, one):
                cleared_names.add(ast.unparse(subject))
                self._mark(one.items, statement, subject)
        for loop in loops:
            if loop.clears and self._always_runs(loop.place, one):
                cleared_names |= {ast.unparse(loop.walked), *(self.lists.names(loop.walked) or ())}
                if loop.change is None:
                    self._mark(one.items, loop.node, loop.walked)
        back = one.items[phase.backs[0]].node
        fresh = FreshLeaves(self.ctx, self.objects, self.scope)
        if not all(leaf in cleared_names or fresh.is_fresh(leaf, one.block, back) for leaf in leaves):
            stepped = any(i.step_call is not None and i.step_call.kind == "step" for i in one.items)
            raise Refused(STORED if stepped else NOT_ZEROED)  # an optimizer's zero_grad() clears its own

    def _zeroed_inside(self, one: AccumulatedTraining) -> Iterator[tuple[ast.stmt, ast.expr]]:
        """The calls that zero gradients in a ``with`` of the block, with what they zero."""
        for statement in self._statements():
            if statement not in one.block and self._always_runs(statement, one):
                part = self.updates.reader.read(statement) if isinstance(statement, ast.Expr) else None
                if part is not None and part.kind == "zero":
                    yield statement, part.subject

    def _always_runs(self, node: ast.stmt, one: AccumulatedTraining) -> bool:
        """Whether a statement runs as often as the backward pass: in its block, or in a ``with`` of it."""
        place: ast.AST = node
        while place not in one.block:
            place = self.ctx.source.parents.get(place, self.ctx.source.tree)
            if not isinstance(place, ast.With):
                return False
        return True

    def _mark(self, items: list[Item], statement: ast.stmt, subject: ast.expr) -> None:
        """A statement of the block that clears gradients is a part of the training step."""
        for item in items:
            if item.node is statement:
                item.step_call = StepCall("zero", statement, ast.Call(subject, [], []), subject)

    def _check_places(self, one: AccumulatedTraining, phase: Phase, uses: Sequence[ast.AST]) -> None:
        """Raises Refused if gradients are used outside of the block, or in front of the backward pass."""
        last = one.items[phase.backs[-1]].node
        cleared = {i.node for i in one.items if i.step_call is not None and i.step_call.kind == "zero"}
        for node in uses:
            place: ast.AST = node
            while place not in one.block:
                if not isinstance(place, ast.expr | ast.With | ast.For | ast.If | ast.stmt):
                    raise Refused(STORED)
                place = self.ctx.source.parents[place]
            if place not in cleared and place.lineno < last.lineno:  # type: ignore[attr-defined]
                raise Refused(STORED)

    # --- writing --------------------------------------------------------------------------------------------------

    def _fresh(self, modules: list[str], leaves: list[str], apart: bool) -> dict[str, str]:
        """The variables that hold the gradients: one for each tensor, where they are read by themselves."""
        fresh = self.ctx.names.fresh
        return {leaf: fresh(f"{leaf}_grad") for leaf in leaves} if apart else {"": fresh("grads")}

    def _read(
        self,
        direct: list[ast.Attribute],
        clearing: list[ast.stmt],
        loops: list[HandStep],
        leaves: list[str],
        grads: dict[str, str],
    ) -> None:
        plan = self.ctx.plan
        gone = {n for s in clearing for n in symbols.walk(s)}
        for node in direct:
            if node not in gone:
                name = grads[node.value.id] if isinstance(node.value, ast.Name) else ""
                plan.on_expression(node, lambda renderer, name=name: Piece(name))  # type: ignore[misc]
        for statement in clearing:
            plan.on_statement(statement, lambda _, node=statement: self._delete(node))  # type: ignore[misc]
        for statement in self._statements():
            if (name := written_through_data(statement)) and name in grads:
                outside = is_seen_outside(self.objects, self.scope, statement, name)
                if outside or not self._has_one_name(name):
                    raise Refused(HELD.format(name))
                plan.on_statement(statement, partial(write_data, self.ctx, statement, name))
        for loop in loops:
            if loop.call is not None:
                plan.parameters[loop.call.function] = (["grads"], [])
                inside = partial(self._write_in_function, loop)
                plan.on_statement(loop.call.body, inside)
            plan.on_statement(loop.place, lambda statements, loop=loop: self._write(loop, grads, statements))  # type: ignore[misc]

    def _has_one_name(self, name: str) -> bool:
        """Whether nothing else holds a tensor, which would see what is written into it."""
        function = self.scope.function.node if self.scope.function is not None else None
        return not has_other_name(self.ctx.source, function, name, ast.Constant(None))

    def _delete(self, node: ast.stmt) -> None:
        """Clearing goes, and what is said of it above."""
        source, above = self.ctx.source, self.ctx.source.statement(node).above
        if above and any(map(ABOUT_ZEROING.search, above)):
            self.ctx.edits.placed_comments.update(above)
            first = source.starts[node.lineno - 1 - len(above)]
            self.ctx.edits.add(first, source.starts[node.lineno - 1], "")
        self.ctx.edits.delete(node)

    def _write(self, loop: HandStep, grads: dict[str, str], statements: StatementRewriter) -> None:
        """``w, b = [p - lr * g for p, g in zip([w, b], grads)]``, and the same over the parameters of a module."""
        if loop.change is None:
            self._delete(loop.node)
            return
        need = statements.renderer.need
        self.ctx.report.count_converted()
        names = self.lists.names(loop.walked) or []
        given = grads[""] if "" in grads else f"[{', '.join(grads[n] for n in names)}]"
        if loop.call is not None:
            self.ctx.edits.replace(loop.place, new_tensors(loop.call, names, given, statements))
            return
        value = changed(self.ctx, loop, statements)
        g = loop.gradient_name
        if is_module(self.ctx.fact(loop.walked)):
            module = statements.renderer.render(loop.walked).text
            state = f"{need('nnx')}.state({module}, {need('nnx')}.Param)"
            text = f"lambda {loop.name}, {g}: {value}"
            tree = f"{need('jax')}.tree.map({text}, {state}, {grads['']})"
            self.ctx.edits.replace(loop.node, f"{need('nnx')}.update({module}, {tree})")
            return
        walked = ast.unparse(loop.walked)
        if names == [walked]:
            line = f"{walked} = [{value} for {loop.name}, {g} in zip({walked}, {given})]"
            self.ctx.edits.replace(loop.node, line)
            return
        kept = f"{walked} = " if isinstance(loop.walked, ast.Name) else ""
        line = f"{', '.join(names)}{',' if len(names) == 1 else ''} = {kept}"
        line += f"[{value} for {loop.name}, {g} in zip({walked}, {given})]"
        self.ctx.edits.replace(loop.node, line)

    def _write_in_function(self, loop: HandStep, statements: StatementRewriter) -> None:
        assert loop.call is not None
        write_update(self.ctx, loop.call, changed(self.ctx, loop, statements), loop.gradient_name, statements)


def clip_stored(ctx: Context, updates: Updates, one: AccumulatedTraining, update: Update) -> None:
    """Clipping is done where it stands, to what the step gave. Raises Refused."""
    for item in one.items:
        clip = item.step_call
        if clip is None or clip.kind != "clip":
            continue
        (module, *_) = updates.updated.clip_target(clip, update.optimized).modules
        if update.grads.startswith("(") or item.inside:
            raise Refused(STORED)

        def write(statements: StatementRewriter, clip: StepCall = clip, module: str = module) -> None:
            lines = clipped(ctx, clip, update.grads, module, statements)
            ctx.edits.insert_before(clip.node, lines[:-1])
            ctx.edits.replace(clip.node, lines[-1])
            ctx.report.count_converted()

        ctx.plan.on_statement(clip.node, write)
