"""Statements that move a batch, or parts of it, to a device: ``x, y = x.to(device), y.to(device)``."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.narrowing import Narrowing
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY

ARRAYS = (Qual("numpy.asarray"), Qual("jax.numpy.asarray"))


class DeviceMoves:
    """Finds them."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def of(self, statement: ast.stmt, used: set[str]) -> list[ast.Call] | None:
        """The calls of a statement that moves the batch to a device, and does nothing else with it; None for others.

        What a function is called with is part of a train step, which takes arrays: ``out = model(x.to(device))``; so is
        what stands beside a model's call: ``y, out = y.to(device), model(x)``.
        """
        if not isinstance(statement, ast.Assign):
            return None
        moves = [n for n in symbols.walk(statement.value) if isinstance(n, ast.Call) and self.is_move(n)]
        inside = {n for m in moves for n in symbols.walk(m)}
        for node in symbols.walk(statement.value):
            if isinstance(node, ast.Name) and node.id in used and node not in inside and not self._items(node, moves):
                return None
            if isinstance(node, ast.Call) and node not in inside and is_module(self.ctx.fact(node.func)):
                return None
        return moves if moves and not any(map(self._is_argument, moves)) else None

    def _is_argument(self, move: ast.Call) -> bool:
        """Whether something is called with what a move gives."""
        node: ast.AST = move
        while isinstance(parent := self.ctx.source.parents.get(node), ast.expr | ast.comprehension | ast.keyword):
            if isinstance(parent, ast.Call) and node is not parent.func and not self._collects(parent):
                return True
            node = parent
        return False

    def _collects(self, call: ast.Call) -> bool:
        """``tuple(t.to(device) for t in batch)``, and an ``autograd.Variable``, which is its tensor."""
        fact = self.ctx.fact(call.func)
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        return ast.unparse(call.func) in ("tuple", "list", "dict") or rule is not None and rule.result == "same"

    def are_all_that(self, loop: ast.For, name: str, moves: list[ast.Call]) -> bool:
        """Whether a loop does nothing with a batch but to move its items."""
        inside = {n for m in moves for n in symbols.walk(m)}
        return all(n in inside for s in loop.body for n in symbols.walk(s) if isinstance(n, ast.Name) and n.id == name)

    def are_made(self, loop: ast.For, name: str) -> bool:
        """Whether a loop does nothing with a batch but to make arrays of its items, as it is written of their moves."""
        made = []
        for node in (n for s in loop.body for n in symbols.walk(s)):
            match node:
                case ast.Call(func=func, args=[ast.Subscript(value=ast.Name(id=source))]) if source == name:
                    if self.ctx.fact(func) in ARRAYS:
                        made.append(node)
        return bool(made) and self.are_all_that(loop, name, made)

    def of_items(self, loop: ast.For, name: str) -> bool:
        """Whether a loop moves items of a batch that it looks up by their names: ``batch["x"].to(device)``."""
        for node in (n for s in loop.body for n in symbols.walk(s)):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=source), slice=key))):
                    if source == name and self.is_move(node) and isinstance(getattr(key, "value", None), str):
                        return True
        return False

    def receiver(self, move: ast.Call) -> ast.expr:
        assert isinstance(move.func, ast.Attribute)
        return move.func.value

    def asked(self, move: ast.Call) -> ast.expr | None:
        """What asks around a move if there is a tensor to move: ``v.to(device) if torch.is_tensor(v) else v``."""
        facts, moved = Narrowing(self.ctx.inference.facts), ast.unparse(self.receiver(move))
        for around in ancestors(move, self.ctx.source.parents):
            match around:
                case ast.IfExp(test=test):
                    tests = [test]
                case (
                    ast.DictComp(generators=[one]) | ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one])
                ):
                    tests = one.ifs
                case ast.stmt():
                    break
                case _:
                    continue
            for test in tests:
                if (asked := facts.asks_for_tensor(test)) is not None and ast.unparse(asked) == moved:
                    return test
        return None

    def _items(self, node: ast.Name, moves: list[ast.Call]) -> bool:
        """Whether a name stands as ``batch.items()`` in a comprehension that moves each item."""
        place: ast.AST | None = node
        while place is not None and not isinstance(place, ast.stmt):
            if isinstance(place, ast.DictComp | ast.ListComp | ast.GeneratorExp):
                return any(m in set(symbols.walk(place)) for m in moves)
            place = self.ctx.source.parents.get(place)
        return False

    def is_move(self, node: ast.Call) -> bool:
        """``x.to(device)``, ``batch["x"].cuda(non_blocking=True)``."""
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in names_with(Trait.TO_DEVICE):
            return False
        receiver = func.value
        while isinstance(receiver, ast.Subscript) and isinstance(receiver.slice, ast.Constant):
            receiver = receiver.value
        return isinstance(receiver, ast.Name)
