"""Tensors that are made anew for each backward pass, as attacks do: their gradients have nothing to add up to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

_SAME = names_with(Trait.SAME_TENSOR)


class FreshLeaves:
    """Asks it of the variables of one scope."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope) -> None:
        self.ctx, self.objects, self.scope = context, objects, scope

    def is_fresh(self, name: str, block: Sequence[ast.stmt], back: ast.stmt) -> bool:
        """Whether a variable holds a new tensor whenever the backward pass ``back`` of a block is made."""
        at = next((i for i, s in enumerate(block) if back in symbols.walk(s)), len(block))
        return self._given_in(name, block[:at], block, at, 0)

    def _given_in(self, name: str, front: Sequence[ast.stmt], block: Sequence[ast.stmt], at: int, depth: int) -> bool:
        """Whether the last of the statements in front that bind a variable gives it a new tensor."""
        if depth > 6:
            return False
        for index in range(len(front) - 1, -1, -1):
            if not any(_binds(n, name) for n in symbols.walk(front[index])):
                continue
            ways = _ways(front[index])
            if ways:
                return all(self._given_in(name, [*front[:index], *way], block, at, depth + 1) for way in ways)
            value = _value(front[index], name)
            return value is not None and self._is_new(value, front[:index], block, at, depth + 1)
        return self._from_outside(name, block, at, depth + 1)

    def _from_outside(self, name: str, block: Sequence[ast.stmt], at: int, depth: int) -> bool:
        """The same for what a block has from its loop, or from the end of it; or a function as its parameter."""
        around = self.ctx.source.parents.get(block[0])
        if isinstance(around, ast.For) and list(around.body) == list(block):
            if any(_binds(n, name) for n in symbols.walk(around.target)):
                return self._loads(around.iter)
            again = [i for i in range(at, len(block)) if any(_binds(n, name) for n in symbols.walk(block[i]))]
            if not again or any(isinstance(n, ast.Continue) for s in block for n in symbols.walk(s)):
                return False
            if not self._given_in(name, block[: again[-1] + 1], block, at, depth):
                return False
            outer = self.ctx.source.block_of(around) or []
            place = outer.index(around) if around in outer else 0
            return bool(outer) and self._given_in(name, outer[:place], outer, len(outer), depth)
        function = self.scope.function
        if function is None or list(function.node.body) != list(block):
            return False
        if not any(a.arg == name for a in named_parameters(function.node)):
            return False
        calls = list(self.objects.calls(function))
        given = [v for call in calls for p, v in bound_arguments(call, function) if p.arg == name]
        return bool(calls) and len(given) == len(calls) and all(map(self._is_batch, given))

    def _is_batch(self, value: ast.expr) -> bool:
        """Whether an argument is what a loader just gave to the loop that the call stands in."""
        if not isinstance(value, ast.Name):
            return self._is_new(value, [], [], 0, 4)
        node: ast.AST = value
        while (parent := self.ctx.source.parents.get(node)) is not None:
            if isinstance(parent, ast.For) and node in parent.body:
                if any(_binds(n, value.id) for n in symbols.walk(parent.target)):
                    return self._loads(parent.iter)
                return False
            if isinstance(parent, ast.FunctionDef | ast.Lambda):
                return False
            node = parent
        return False

    def _loads(self, node: ast.expr) -> bool:
        """Whether a loop walks over a loader, whose batches are new tensors."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and node.args:
            if isinstance(self.ctx.fact(node), Object):
                break
            node = node.args[0]
        fact = self.ctx.fact(node)
        return isinstance(fact, Object) and fact.kind == "loader"

    def _is_new(
        self, value: ast.expr, front: Sequence[ast.stmt], block: Sequence[ast.stmt], at: int, depth: int
    ) -> bool:
        match value:
            case ast.BinOp():
                return isinstance(self.ctx.fact(value), Tensor)
            case ast.Name(id=name):
                return bool(block) and self._given_in(name, front, block, at, depth)
            case ast.Attribute(attr="data", value=owner):
                return isinstance(self.ctx.fact(owner), Tensor)
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if isinstance(self.ctx.fact(owner), Tensor):
                if attr in _SAME or attr.endswith("_"):
                    return self._is_new(owner, front, block, at, depth)
                return isinstance(self.ctx.fact(value), Tensor)
            case ast.Call(func=function):
                fact = self.ctx.fact(function)
                return isinstance(fact, Qual) and is_torch(fact.name) and isinstance(self.ctx.fact(value), Tensor)
        return False


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _ways(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of which a statement runs one, and nothing else: those of a condition, and of a ``with``."""
    match node:
        case ast.If(body=body, orelse=orelse):
            return [body, orelse]
        case ast.With(body=body):
            return [body]
    return []


def _value(node: ast.stmt, name: str) -> ast.expr | None:
    """What an assignment gives a variable: ``x, y = x.to(device), y.to(device)``."""
    match node:
        case ast.Assign(targets=[ast.Name()], value=value):
            return value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            return next((v for t, v in zip(targets, values, strict=True) if _binds(t, name)), None)
    return None
