"""Steps that are bound to their modules and optimizers once: ``train_step = nnx.jit_partial(train_step, model, ...)``.

A call of a function under ``nnx.jit`` looks at all variables of what it is given, before and after it computes, which
takes longer than a small model's step. ``nnx.jit_partial`` does it once. So what is bound has to be the same objects,
of the same structure and in the same mode, whenever the step is called; here that is looked for in the file.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.training.program.flow import is_mode
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.once import GROWING

_LOOPS = ast.For | ast.While
_INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_AGAIN = (ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.Lambda)


class BoundSteps:
    """Looks at what the steps of one scope are given."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope

    def loop(self, place: ast.stmt, modules: Sequence[str], optimizers: Sequence[str]) -> ast.For | ast.While | None:
        """The loop in front of which the step at a place is bound; None if it can't be."""
        outermost = self._outermost(place)
        if outermost is None or not self._runs_once:
            return None
        names = [*modules, *optimizers]
        if not all(name.isidentifier() and self._is_made_before(name, outermost) for name in names):
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
        calls = [*self.objects.calls(info)]
        named = [n for n in self.ctx.source.nodes if isinstance(n, ast.Name) and n.id == info.name]
        if info.owner is not None or info.outer is not None or len(calls) != 1 or len(named) != 1:
            return False
        around = with_ancestors(calls[0], self.ctx.source.parents)
        return not any(isinstance(at, (*_AGAIN, ast.FunctionDef, ast.AsyncFunctionDef)) for at in around)

    def _is_made_before(self, name: str, loop: ast.stmt) -> bool:
        """Whether a variable is given its only value by a statement of the scope's own block in front of a loop."""
        home = self.scope.node
        stores = [n for n in self._stores if n.id == name and self.ctx.source.home(n) is home]
        if len(stores) != 1 or self._is_rebound(name):
            return False
        statement = self.ctx.source.parents.get(stores[0])
        return isinstance(statement, ast.Assign) and statement in self._body and statement.lineno < loop.lineno

    @cached_property
    def _stores(self) -> list[ast.Name]:
        return [n for n in self.ctx.source.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]

    def _is_rebound(self, name: str) -> bool:
        """Whether functions may give a variable another value."""
        shared = ast.Global | ast.Nonlocal
        return any(isinstance(n, shared) and name in n.names for n in self.ctx.source.nodes)

    def _grows(self, node: ast.AST, modules: Sequence[str]) -> bool:
        """Whether something is added to a part of a module: ``model.layers.append(layer)``."""
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=held)) if attr in GROWING:
                return ast.unparse(held).partition(".")[0].partition("[")[0] in modules
        return False

    # --- modes ----------------------------------------------------------------------------------------------------

    def _keeps_mode(self, place: ast.stmt, loop: ast.For | ast.While, modules: Sequence[str]) -> bool:
        """Whether the modules are in the mode at each step in which they were in front of the loop."""
        before = self._body[: self._body.index(loop)]
        if not any(self._changes_mode(node) for node in loop.body):
            return True
        if any(self._changes_mode(node) and not self._trains(node, modules) for node in before):
            return False
        return all(self._is_put_back(place, loop, module) for module in modules)

    def _is_put_back(self, place: ast.stmt, loop: ast.stmt, module: str) -> bool:
        """Whether ``model.train()`` stands in front of a step, in a block around it, and nothing changes modes between.

        What runs in a loop from one step to the next counts as well.
        """
        node: ast.AST = place
        for around in with_ancestors(self.ctx.source.parents[place], self.ctx.source.parents):
            block = next((b for b in _blocks(around) if node in b), [])
            for other in reversed(block[: block.index(node)] if isinstance(node, ast.stmt) and node in block else []):
                if self._trains(other, [module]):
                    return True
                if self._changes_mode(other):
                    return False
            if around is loop:
                return False
            if isinstance(around, _LOOPS) and any(map(self._changes_mode, around.body)):
                return False
            node = around
        return False

    def _trains(self, node: ast.stmt, modules: Collection[str]) -> bool:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="train", value=module), args=[], keywords=[])):
                return ast.unparse(module) in modules
        return False

    def _changes_mode(self, node: ast.stmt) -> bool:
        """Whether a statement sets a mode of some module, or calls a function that does."""
        if isinstance(node, _INNER):
            return False
        return any(map(self._sets_mode, _run(node))) or any(info in self._setting for info in self._called(node))

    def _sets_mode(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr="train" | "eval", value=owner)):
                return is_mode(ast.Expr(node)) or is_module(self.ctx.fact(owner))
        return False

    @cached_property
    def _setting(self) -> set[FunctionInfo]:
        """The functions of the file that set modes, or call others that do."""
        functions = [*self.ctx.inference.functions.values()]
        out = {info for info in functions if any(map(self._sets_mode, symbols.walk(info.node)))}
        while more := {info for info in functions if info not in out and not out.isdisjoint(self._called(info.node))}:
            out |= more
        return out

    def _called(self, node: ast.AST) -> Iterator[FunctionInfo]:
        """The functions of the file that some code names: what it calls, and what may be called by others."""
        nodes = [*symbols.walk(node)]
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        names |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        yield from (info for info in self.ctx.inference.functions.values() if info.name in names)
        called = (called_function(self.ctx.fact(n.func)) for n in nodes if isinstance(n, ast.Call))
        yield from (info for info in called if info is not None)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The code of a statement, without that of functions and classes in it."""
    yield node
    for child in symbols.children(node):
        if not isinstance(child, _INNER):
            yield from _run(child)
