"""Steps that are bound to their modules and optimizers once: ``train_step = nnx.jit_partial(train_step, model, ...)``.

A call of a function under ``nnx.jit`` looks at all variables of what it is given, before and after it computes, which
takes longer than a small model's step. ``nnx.jit_partial`` does it once. So what is bound has to be the same objects,
of the same structure and in the same mode, whenever the step is called; here that is looked for in the file.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.source.positions import position
from t2j_lsp.translate.training.program.cut_values import GROWING
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.single_runs import SingleRuns

from .bound_calls import BoundCalls
from .modes import set_by

_LOOPS = ast.For | ast.While


class BoundSteps:
    """Looks at what the steps of one scope are given."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.modes = BoundCalls.of(context, objects).modes

    def loop(self, place: ast.stmt, modules: Sequence[str], optimizers: Sequence[str]) -> ast.For | ast.While | None:
        """The loop in front of which the step at a place is bound; None if it can't be."""
        outermost = self._outermost(place)
        if outermost is None or not self._runs_once and not all(map(self._is_new_in_each_call, optimizers)):
            return None
        names = [*modules, *optimizers]
        if not all(name.isidentifier() and self._stays(name, outermost) for name in names):
            return None
        if any(self._grows(node, modules) for node in symbols.walk(outermost)):
            return None
        return outermost if self._keeps_mode(place, outermost, modules) else None

    @property
    def _body(self) -> Sequence[ast.stmt]:
        return self.scope.function.node.body if self.scope.function is not None else self.ctx.source.tree.body

    def _outermost(self, place: ast.stmt) -> ast.For | ast.While | None:
        """The statement of the scope's own block around a place, if it is a loop."""
        around = next((at for at in with_ancestors(place, self.ctx.source.parents) if at in self._body), None)
        return around if isinstance(around, _LOOPS) and around is not place else None

    @cached_property
    def _runs_once(self) -> bool:
        """Whether the scope is the module level, or a function that the file names once and calls outside of loops."""
        info = self.scope.function
        if info is None:
            return True
        return info.owner is None and info.outer is None and SingleRuns(self.objects).is_called_once(info)

    def _is_new_in_each_call(self, optimizer: str) -> bool:
        """Whether an optimizer is made for each call of the function, for each of which the step is compiled anyway."""
        info = self.scope.function
        if info is None or not optimizer.isidentifier():
            return False
        made = self.objects.constructors(ast.Name(optimizer, ast.Load()), self.scope)
        inside = {*symbols.walk(info.node)}
        if made and all(call in inside for call in made):
            return True
        return self._is_made_for_calls(optimizer, info)

    def _is_made_for_calls(self, parameter: str, info: FunctionInfo) -> bool:
        """Whether the calls of a function stand in one block, each behind what makes the optimizer that it is given."""
        calls = sorted(SingleRuns(self.objects).all_calls(info), key=position)
        statements = [nearest(ast.stmt, call, self.ctx.source.parents) for call in calls]
        block = self.ctx.source.block_of(statements[0]) if statements and statements[0] is not None else None
        last = 0
        for call, statement in zip(calls, statements, strict=True):
            given = next((value for one, value in bound_arguments(call, info) if one.arg == parameter), None)
            if block is None or statement not in block or not isinstance(given, ast.Name):
                return False
            between = block[last : block.index(statement)]
            made = (n for s in between if isinstance(s, ast.Assign) for n in symbols.walk(s) if isinstance(n, ast.Name))
            if not any(n.id == given.id and isinstance(n.ctx, ast.Store) for n in made):
                return False
            last = block.index(statement)
        return bool(calls)

    def _stays(self, name: str, loop: ast.stmt) -> bool:
        """Whether a variable has one value from a loop on; a parameter too, where each call binds the step."""
        if name == "rngs" and not self._stores(name):
            return self._is_seeded_before(loop)
        info = self.scope.function
        if info is None or self._runs_once or name not in symbols.parameter_names(info.node):
            return self._is_made_before(name, loop)
        given = any(self.ctx.source.home(n) is info.node for n in self._stores(name))
        return not given and not self._is_rebound(name)

    def _is_seeded_before(self, loop: ast.stmt) -> bool:
        """Whether the generator is made once, by a statement of the scope's own block in front of a loop that seeds."""
        calls = BoundCalls.of(self.ctx, self.objects)
        statements = [self.ctx.source.parents.get(call) for call in calls.seeding]
        before = [s for s in statements if isinstance(s, ast.Expr) and s in self._body and s.lineno < loop.lineno]
        return calls.makes_rngs_once and len(before) == len(statements) == 1

    def _is_made_before(self, name: str, loop: ast.stmt) -> bool:
        """Whether a variable is given its only value by a statement of the scope's own block in front of a loop."""
        home = self.scope.node
        stores = [n for n in self._stores(name) if self.ctx.source.home(n) is home]
        if len(stores) != 1 or self._is_rebound(name):
            return False
        statement = self.ctx.source.parents.get(stores[0])
        return isinstance(statement, ast.Assign) and statement in self._body and statement.lineno < loop.lineno

    def _stores(self, name: str) -> list[ast.Name]:
        return [n for n in self.ctx.source.names.get(name, ()) if not isinstance(n.ctx, ast.Load)]

    def _is_rebound(self, name: str) -> bool:
        """Whether functions may give a variable another value."""
        shared = ast.Global | ast.Nonlocal
        if "global" not in self.ctx.source.text and "nonlocal" not in self.ctx.source.text:
            return False
        return any(isinstance(n, shared) and name in n.names for n in self.ctx.source.nodes)

    def _grows(self, node: ast.AST, modules: Sequence[str]) -> bool:
        """Whether something is added to a part of a module: ``model.layers.append(layer)``."""
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=held)) if attr in GROWING:
                return ast.unparse(held).partition(".")[0].partition("[")[0] in modules
        return False

    def _keeps_mode(self, place: ast.stmt, loop: ast.For | ast.While, modules: Sequence[str]) -> bool:
        """Whether the modules are in the mode at each step in which they were in front of the loop."""
        modes, before = self.modes, self._body[: self._body.index(loop)]
        if modes.make_no_difference or not any(modes.changes(node) for node in loop.body):
            return True
        if any(modes.changes(node) and set_by(node, "train") not in modules for node in before):
            return False
        return all(modes.is_set_before(place, module, "train", loop) for module in modules)
