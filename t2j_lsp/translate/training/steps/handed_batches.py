"""Batches that are only handed to compiled functions, which take NumPy's arrays as they are.

``jnp.asarray`` of a tensor takes longer than a small model's step; a compiled function moves NumPy's arrays itself.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Set
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import Function, Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, Object, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, is_loss, names_with
from t2j_lsp.translate.training.data.batch_loops import batch_targets, is_loader, is_move, loader_of, names_in
from t2j_lsp.translate.training.program.kept_values import assigned_to

from .training_steps import Steps


class HandedBatches:
    """Looks at what reads a variable of a loop over batches."""

    def __init__(
        self, context: Context, steps: Steps, compiled: Collection[ast.Call], passed: Set[ast.AST] = frozenset()
    ) -> None:
        self.ctx, self.parents = context, context.source.parents
        self.steps = steps
        self.compiled = compiled
        """Calls of modules that go through a compiled function."""
        self.passed = passed
        """Statements and expressions that are computed in one function with such a call."""

    def is_handed(self, target: ast.Name) -> bool:
        """Whether compiled functions alone read what a loop takes of a batch: a variable and those beside it."""
        loop = self._loop_of(target)
        if loop is None or not is_loader(self.ctx.fact(loader_of(loop.iter))) or self._may_be_on_card(loop):
            return False
        return all(self._is_read_so(one, loop) for one in batch_targets(loop))

    def is_unpacked(self, statement: ast.Assign) -> bool:
        """Whether they alone read what ``x, y = batch`` takes apart."""
        assert isinstance(statement.value, ast.Name)
        loop = self._loop_of(statement.value)
        if loop is None or not is_loader(self.ctx.fact(loader_of(loop.iter))) or self._may_be_on_card(loop):
            return False
        return all(self._is_read_so(one, loop) for one in names_in(statement.targets[0]))

    def is_part(self, move: ast.Call) -> bool:
        """Whether they alone read what ``x = batch["x"].to(device)`` takes out of one."""
        named = assigned_to(move, self.parents)
        batch = next((n for n in symbols.walk(move.func) if isinstance(n, ast.Name)), None)
        loop = self._loop_of(batch) if batch is not None else None
        if named is None or loop is None or not is_loader(self.ctx.fact(loader_of(loop.iter))) or self._moves_own:
            return False
        return self._is_read_so(named, loop)

    def _may_be_on_card(self, loop: ast.For) -> bool:
        """Whether batches may be on a card, of which NumPy takes none, before the loop itself moves them there."""
        if self._moves_own:
            return True
        taken = {n.id for n in batch_targets(loop)}
        moved = (n.func.value for n in symbols.walk(loop) if is_move(n))  # type: ignore[attr-defined]
        return not self._sees_all and not any(isinstance(n, ast.Name) and n.id in taken for n in moved)

    @cached_property
    def _moves_own(self) -> bool:
        """Whether the data pipeline of the file puts tensors on a device."""
        kept = (n for node in self.ctx.plan.kept for n in symbols.walk(node))
        return any(is_move(n) or isinstance(n, ast.keyword) and n.arg == "device" for n in kept)

    @cached_property
    def _sees_all(self) -> bool:
        """Whether the file shows what its loaders are made of."""
        return all(map(self._is_seen, self.ctx.source.nodes))

    def _is_seen(self, node: ast.AST) -> bool:
        """Whether it is no loader that is made of a data set of which nothing is known, or in another file."""
        made = self.ctx.fact(node)
        if not isinstance(node, ast.Call) or not isinstance(made, Object) or made.kind != "loader":
            return True
        if isinstance(maker := self.ctx.fact(node.func), Function) and maker.info.external:
            return False
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "dataset")]
        fact = self.ctx.fact(given[0]) if given else UNKNOWN
        elsewhere = isinstance(fact, Qual) or isinstance(fact, Instance) and fact.cls.info.external
        return is_known(fact) and not elsewhere

    def _is_read_so(self, target: ast.Name, loop: ast.For) -> bool:
        """Whether compiled functions and losses alone read a variable, but for its sizes and comparisons."""
        home = self.ctx.source.home(target)
        around: set[ast.AST] = {loop, *(at for at in ancestors(loop, self.parents) if isinstance(at, ast.For))}
        own = [n for n in self._reads.get((target.id, home), ()) if self._loop_of(n) in (loop, None)]
        return all(self._is_in_step(n, around) or self._is_taken(n, n) for n in own)

    @cached_property
    def _reads(self) -> dict[tuple[str, symbols.ScopeNode | None], list[ast.Name]]:
        """Where the variables of each scope are read."""
        out: dict[tuple[str, symbols.ScopeNode | None], list[ast.Name]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                out.setdefault((node.id, self.ctx.source.home(node)), []).append(node)
        return out

    def _loop_of(self, name: ast.Name) -> ast.For | None:
        """The innermost loop around a variable that gives it a batch."""
        loops = (at for at in ancestors(name, self.parents) if isinstance(at, ast.For))
        return next((at for at in loops if name.id in {n.id for n in batch_targets(at)}), None)

    def _is_in_step(self, node: ast.Name, loops: set[ast.AST]) -> bool:
        """Whether it stands in a compiled step that a loop around it makes, or in a forward pass with what follows."""
        if node in self.steps.uncompiled:
            return False
        around = list(ancestors(node, self.parents))
        if not self.passed.isdisjoint(around):
            return True
        used = next((at for at in around if at in self.steps.used or at in self.steps.measured), None)
        return used is not None and loops <= set(ancestors(used, self.parents))

    def _is_taken(self, node: ast.Name, value: ast.expr) -> bool:
        """Whether a batch, or what moves it to a device, is given to what takes NumPy's arrays for JAX's."""
        match parent := self.parents.get(value):
            case ast.Call(func=ast.Name(id="len")):
                return True
            case ast.Call():
                return value in parent.args and (parent in self.compiled or self._is_loss(parent.func))
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                return all(isinstance(self.ctx.fact(one), Tensor) for one in (left, right))
            case ast.Subscript(slice=ast.Constant()) if parent.value is value:
                return not isinstance(self.ctx.fact(value), Tensor) and self._is_taken(node, parent)
            case ast.Attribute(attr="shape" | "device"):
                return True
            case ast.Attribute(attr="data"):
                return self._is_taken(node, parent)
            case ast.Attribute(attr="size"):
                return isinstance(self.parents.get(parent), ast.Call)
            case ast.Attribute():
                move = self.parents.get(parent)
                if not isinstance(move, ast.Call) or not is_move(move):
                    return False
                named = assigned_to(move, self.parents)
                return self._is_taken(node, move) if named is None else named.id == node.id
        return False

    def _is_loss(self, func: ast.expr) -> bool:
        fact = self.ctx.fact(func)
        return is_loss(fact) or isinstance(fact, Qual) and fact.name in names_with(Trait.LOSS_FUNCTION)
