"""Variables that a step gives in some cases only: ``if use_aux: aux = ...``, which a function can't return otherwise.

What PyTorch's loop binds in one branch is not there in the other, and nobody asks for it: a step returns it always.
Where nothing behind the step can see a value from before, it is None in the step; where the loop has one from before,
the step is given it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.training.program.flow import DataFlow, surely_given
from t2j_lsp.translate.training.program.objects import VariableScope
from t2j_lsp.translate.training.program.step_calls import Refused

from .update import Update

KEPT = (
    "{name} may keep its value from an earlier round, where the step gives it none: give it one in front of the loop."
)
_PURE = frozenset({"isinstance", "hasattr", "len", "bool", "callable"})


class PartlyGiven:
    """Asks it of the updates of one scope."""

    def __init__(self, context: Context, scope: VariableScope, flow: DataFlow) -> None:
        self.ctx = context
        self.flow = flow
        self.root: ast.AST = scope.function.node if scope.function is not None else context.source.tree
        named = symbols.named_parameters(scope.function.node) if scope.function is not None else ()
        self.parameters = {a.arg for a in named}

    def unbound(self, update: Update) -> list[str]:
        """Those that are None in the step where it doesn't give them. Raises Refused."""
        return [name for name in self._names(update) if not self._is_kept(update, name)]

    def kept(self, update: Update) -> list[str]:
        """Those that the step is given, which has a value for them at each call. Raises Refused."""
        return [name for name in self._names(update) if self._is_kept(update, name)]

    def _names(self, update: Update) -> list[str]:
        moved = [update.items[i].node for i in sorted([*update.slice.moved, *update.slice.split])]
        sure = surely_given(self.flow, moved, runs=True)
        bound = {self.flow.variable(n) for node in moved for n in symbols.walk(node) if _is_store(n)}
        return [name for name in update.live if name in bound - sure]

    def _is_kept(self, update: Update, name: str) -> bool:
        """Whether what a variable held before may be read behind the step. Raises Refused if it may hold nothing."""
        moved = {n for i in (*update.slice.moved, *update.slice.split) for n in symbols.walk(update.items[i].node)}
        place = update.items[update.slice.call].node
        before = self._is_given_before(place, name, moved)
        if not before and (not self._loops(place) or self._is_guarded(update, name, moved)):
            return False
        if self._surely_before(place, name, moved):
            return True
        raise Refused(KEPT.format(name=name))

    def _loops(self, place: ast.stmt) -> list[ast.AST]:
        around: list[ast.AST] = []
        for at in ancestors(place, self.ctx.source.parents):
            if at is self.root:
                break
            if isinstance(at, ast.For | ast.While | ast.AsyncFor):
                around.append(at)
        return around

    def _is_given_before(self, place: ast.stmt, name: str, moved: set[ast.AST]) -> bool:
        """Whether something else may give it a value, in front of the step or in a loop around it."""
        inside = {n for loop in self._loops(place) for n in symbols.walk(loop)}
        stores = (
            n for n in symbols.own_nodes(self.root) if _is_store(n) and self.flow.variable(n) == name and n not in moved
        )
        return name in self.parameters or any(n in inside or getattr(n, "lineno", 0) < place.lineno for n in stores)

    def _surely_before(self, place: ast.stmt, name: str, moved: set[ast.AST]) -> bool:
        """Whether every way to the step gives it a value first."""
        at: ast.AST = place
        while at is not self.root and isinstance(at, ast.stmt):
            block = self.ctx.source.block_of(at) or []
            earlier = [s for s in block[: block.index(at)] if s not in moved] if at in block else []
            if name in surely_given(self.flow, earlier):
                return True
            at = self.ctx.source.parents.get(at, self.root)
        return name in self.parameters

    def _is_guarded(self, update: Update, name: str, moved: set[ast.AST]) -> bool:
        """Whether it is only read where the condition holds under which the step gives it: ``if use_aux``."""
        stores = [n for n in moved if _is_store(n) and self.flow.variable(n) == name]
        tests = [self._tests(n) for n in stores]
        reads = [
            n for n in symbols.own_nodes(self.root) if _is_load(n) and self.flow.variable(n) == name and n not in moved
        ]
        read = {n for n in symbols.walk(self.root) if isinstance(n, ast.Name) and _is_load(n) and n.id == name}
        if not read <= moved.union(reads):
            return False  # a function in it reads it
        common = set.intersection(*tests) if tests else set()
        fixed = {text for text in common if self._is_fixed(update, ast.parse(text, mode="eval").body)}
        return bool(fixed) and all(fixed & self._tests(read) for read in reads)

    def _tests(self, node: ast.AST) -> set[str]:
        """The conditions that hold where a node is run, as far as the function's statements and choices say."""
        tests: set[str] = set()
        inner: ast.AST = node
        for at in ancestors(node, self.ctx.source.parents):
            if at is self.root:
                break
            if isinstance(at, ast.If) and inner in at.body or isinstance(at, ast.IfExp) and inner is at.body:
                tests.add(ast.unparse(at.test))
            inner = at
        return tests

    def _is_fixed(self, update: Update, test: ast.expr) -> bool:
        """Whether a condition is the same in front of the step and behind it."""
        calls = (n for n in ast.walk(test) if isinstance(n, ast.Call))
        if not all(isinstance(call.func, ast.Name) and call.func.id in _PURE for call in calls):
            return False
        read = {ast.unparse(n) for n in ast.walk(test) if isinstance(n, ast.Name | ast.Attribute)}
        first = min([*update.slice.moved, *update.slice.split])
        written = set[str]().union(*(self.flow.writes(item.node) for item in update.items[first:]))
        return not read & written


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)


def none_first(names: Sequence[str]) -> list[str]:
    """The lines that make variables None, in front of what may give them a value."""
    return [f"{' = '.join(names)} = None"] if names else []
