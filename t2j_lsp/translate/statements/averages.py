"""Loops over the parameters of two models of one class, which write into one of them: averages of weights.

    for p, q in zip(net.parameters(), target.parameters()):
        q.data.copy_(tau * p.data + (1 - tau) * q.data)

is ``optax.incremental_update`` of the states of both, compiled in a program that trains if both are surely trees, and
other arithmetic one ``jax.tree.map`` over them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, nearest, walk
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.paired_parameters import paired_modules
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Layer, Tensor

_Names = dict[str, str]
"""The variables that hold a parameter, each with that of the loop."""


@dataclass(frozen=True)
class _Written:
    """What a loop's body writes into one of its variables: ``scale * old + value``, or the value alone."""

    target: ast.expr
    value: ast.expr
    scale: ast.expr | None = None
    factor: ast.expr | None = None


class Averages:
    """The loops that write an average into a model."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def loop(self, node: ast.For) -> bool:
        """Write ``nnx.update(target, ...)`` for such a loop; whether it was one."""
        match node:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                orelse=[],
            ):
                pass
            case _:
                return False
        models, loop_names = paired_modules(node), [first, second]
        names, body = self._named(node) if models else ({}, [])
        written = _written(body)
        held = None if written is None else _held(written.target, names)
        if written is None or held is None or not self._are_alike(models) or self._is_read_behind(node, loop_names):
            return False
        written, names = self._computed(written, names)
        if written.scale is not None and any(
            _held(n, names) == held for n in walk(written.value) if isinstance(n, ast.expr)
        ):
            return False  # it reads what was scaled before
        text = self._new_value(written, names, held)
        if text is None:
            return False
        need = self.renderer.need
        texts = [self.renderer.render(model).text for model in models if model is not None]
        states = [f"{need('nnx')}.state({model}, {need('nnx')}.Param)" for model in texts]
        step = _share(written, names, held)
        if step is not None and node in self.ctx.plan.tree_averages:
            pair = f"{texts[loop_names.index(held)]}, {texts[1 - loop_names.index(held)]}"
            share, name = self._text(step, names, False), need(self.ctx.plan.tree_averages[node])
            bound = name == "polyak_step"
            call = f"{need('bound_jit')}({name}, {pair})({share})" if bound else f"{name}({pair}, {share})"
            self.ctx.edits.replace(node, call)
            self.ctx.report.count_converted()
            return True
        if step is not None:
            new, old = states if held == second else reversed(states)
            average = f"{need('optax')}.incremental_update({new}, {old}, {self._text(step, names, False)})"
        else:
            average = f"{need('jax')}.tree.map(lambda {first}, {second}: {text}, {', '.join(states)})"
        self.ctx.edits.replace(node, f"{need('nnx')}.update({texts[loop_names.index(held)]}, {average})")
        self.ctx.report.count_converted()
        return True

    def _named(self, node: ast.For) -> tuple[_Names, list[ast.stmt]]:
        """The names of the parameters in a loop, those that it gives them among these, and what it does then."""
        assert isinstance(node.target, ast.Tuple)
        names: _Names = {n.id: n.id for n in node.target.elts if isinstance(n, ast.Name)}
        for index, statement in enumerate(node.body):
            more = _aliases(statement, names)
            if more is None or not all(self._is_of_loop(name, node) for name in more):
                return names, node.body[index:]
            names |= more
        return names, []

    def _is_of_loop(self, name: str, loop: ast.For) -> bool:
        """Whether a variable is named nowhere but in a loop, in its function."""
        inside = {*walk(loop)}
        function = nearest(ast.FunctionDef, loop, self.ctx.source.parents)
        named = (n for n in walk(function or self.ctx.source.tree) if isinstance(n, ast.Name) and n.id == name)
        return all(n in inside for n in named)

    def _computed(self, written: _Written, names: _Names) -> tuple[_Written, _Names]:
        """What a method of the same object, or a function, computes of both, in place of its call.

        ``q.data = self.update_average(q.data, p.data)``, which gives ``old * self.beta + (1 - self.beta) * new``.
        """
        call = written.value
        info = called_function(self.ctx.fact(call.func)) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or info is None or info.external or written.scale is not None:
            return written, names
        arguments, body = info.node.args, [*info.node.body]
        own = [a.arg for a in arguments.args[:1]] if info.owner is not None and not info.static else []
        if own and (not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) != own[0]):
            return written, names
        given = {p.arg: _held(value, names) for p, value in bound_arguments(call, info)}
        if {*given, *own} != {a.arg for a in arguments.args} or None in given.values() or info.node.decorator_list:
            return written, names
        if ast.get_docstring(info.node, clean=False) is not None:
            del body[0]
        while len(body) > 1 and _asks_for_none(body[0], given):
            del body[0]
        match body:
            case [ast.Return(value=ast.expr() as value)] if self._means_the_same(value, {*given, *own}, call, info):
                return _Written(written.target, value), {name: held for name, held in given.items() if held}
        return written, names

    def _means_the_same(self, value: ast.expr, own: set[str], call: ast.Call, info: FunctionInfo) -> bool:
        """Whether what a function gives may stand for a call of it: no class has another, and no name is another's."""
        others = [one for one in self.ctx.inference.functions.values() if one.name == info.name and one is not info]
        names = [n for n in walk(value) if isinstance(n, ast.Name) and n.id not in own]
        scopes, source = symbols.scopes_around(call, self.ctx.source.parents), self.ctx.source
        at_module = all(source.home(n) is None and source.symbols.home(n.id, scopes) is None for n in names)
        return at_module and not (info.owner is not None and others)

    def _are_alike(self, models: list[ast.expr | None]) -> bool:
        """Whether two models are of one class of the file, or built in one place: their states have one form."""
        match [self.ctx.fact(model) for model in models if model is not None]:
            case [Instance() as one, Instance() as other]:
                return is_module(one) and one.cls.info is other.cls.info
            case [Layer(node=one), Layer(node=other)]:
                return one is other and one is not None
        return False

    def _is_read_behind(self, node: ast.For, names: list[str]) -> bool:
        """Whether the loop's variables are read elsewhere than in loops that give them their values."""
        bound = {n for loop in self.ctx.source.nodes if _gives(loop, names) for n in walk(loop)}
        return any(
            isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and n not in bound
            for n in self.ctx.source.nodes
        )

    def _new_value(self, written: _Written, names: _Names, held: str) -> str | None:
        """The value as an expression of the two arrays; None if it is more than arithmetic."""
        factors = written.scale is not None
        given = [(written.value, written.factor is not None), (written.scale, factors), (written.factor, True)]
        parts = [self._text(part, names, inside) for part, inside in given if part is not None]
        if any(part is None for part in parts):
            return None
        value, *others = [part for part in parts if part is not None]
        if written.scale is None:
            return value
        scale, *factor = others
        return f"{scale} * {held} + {f'{factor[0]} * {value}' if factor else value}"

    def _text(self, node: ast.expr, names: _Names, multiplied: bool) -> str | None:
        """An expression with the parameters' names for their values; brackets around a sum that is multiplied."""
        if not self._is_arithmetic(node, names):
            return None
        start, end = self.ctx.source.span(node)
        out, at = "", start
        for part in _operands(node, names):
            low, high = self.ctx.source.span(part)
            text = _held(part, names) or self.renderer.render(part).text
            out, at = f"{out}{self.ctx.source.text[at:low]}{text}", high
        out += self.ctx.source.text[at:end]
        text = " ".join(out.split())
        added = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
        return f"({text})" if added and multiplied else text

    def _is_arithmetic(self, node: ast.expr, names: _Names) -> bool:
        """Whether it is made of the parameters, names and numbers by ``+ - * /``."""
        if _held(node, names) is not None:
            return True
        match node:
            case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self._is_arithmetic(left, names) and self._is_arithmetic(right, names)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._is_arithmetic(inner, names)
            case ast.Constant(value=int() | float()):
                return True
            case ast.Name() | ast.Attribute():
                named = not any(isinstance(n, ast.Name) and n.id in names for n in walk(node))
                return named and not isinstance(self.ctx.fact(node), Tensor)
        return False


def _gives(node: ast.AST, names: list[str]) -> bool:
    """Whether a loop or comprehension gives one of some names its value."""
    givers = [node] if isinstance(node, ast.For) else node.generators if isinstance(node, Comprehension) else []
    return any(isinstance(n, ast.Name) and n.id in names for one in givers for n in symbols.walk(one.target))


def _aliases(statement: ast.stmt, names: _Names) -> _Names | None:
    """The names that a statement gives parameters: ``old, new = q.data, p.data``; None for others."""
    match statement:
        case ast.Assign(targets=[ast.Name() as target], value=value):
            pairs: list[tuple[ast.expr, ast.expr]] = [(target, value)]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            pairs = list(zip(targets, values, strict=True))
        case _:
            return None
    out = {t.id: held for t, value in pairs if isinstance(t, ast.Name) and (held := _held(value, names)) is not None}
    return out if len(out) == len(pairs) and out.keys().isdisjoint(names) else None


def _asks_for_none(statement: ast.stmt, given: Collection[str]) -> bool:
    """Whether a statement is for a parameter that is None: ``if old is None: return new``."""
    match statement:
        case ast.If(
            test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]),
            body=[ast.Return()],
            orelse=[],
        ):
            return name in given
    return False


def _held(node: ast.expr, names: _Names) -> str | None:
    """The name of a parameter, where an expression is it or its values."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[], keywords=[]):
            return _held(inner, names)
        case ast.Attribute(value=inner, attr="data"):
            return _held(inner, names)
    return None


def _share(written: _Written, names: _Names, held: str) -> ast.expr | None:
    """The share of the other model, where its share and that of the one that is written into are 1 together."""
    if written.scale is None:
        parts = [written.value.left, written.value.right] if _is(written.value, ast.Add) else []
        terms = [term for part in parts for term in _scaled(part, names)]
    else:
        added = [(written.factor, written.value)] if written.factor is not None else _scaled(written.value, names)
        terms = [(written.scale, written.target), *added]
    shares = {_held(one, names): share for share, one in terms}
    if len(terms) != 2 or shares.keys() != {*names.values()}:
        return None
    share = next(share for name, share in shares.items() if name != held)
    return share if _is_rest(share, shares[held]) or _is_rest(shares[held], share) else None


def _is(node: ast.expr, operator: type[ast.operator]) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, operator)


def _scaled(node: ast.expr, names: _Names) -> list[tuple[ast.expr, ast.expr]]:
    """A number and the parameter that it is multiplied with."""
    sides = [(node.left, node.right), (node.right, node.left)] if _is(node, ast.Mult) else []
    return [(number, held) for number, held in sides if _held(held, names) is not None]


def _is_rest(node: ast.expr, share: ast.expr) -> bool:
    """Whether a number is ``1 - share``."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right):
            return ast.unparse(right) == ast.unparse(share)
    return False


def _operands(node: ast.expr, names: _Names) -> list[ast.expr]:
    """What an expression is computed of, from left to right: the parameters or their values, other variables."""
    if _held(node, names) is not None or isinstance(node, ast.Name | ast.Attribute):
        return [node]
    return [
        part for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr) for part in _operands(child, names)
    ]


def _written(body: list[ast.stmt]) -> _Written | None:
    """What the statements of a loop write: a copy, a new value, or ``q.mul_(tau)`` and ``q.add_(...)``."""
    match body:
        case [ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="copy_"), args=[value], keywords=[]))]:
            return _Written(target, value)
        case [ast.Assign(targets=[ast.Attribute(attr="data") as target], value=value)]:
            return _Written(target, value)
        case [
            ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Call(func=ast.Attribute(value=target, attr="mul_"), args=[scale], keywords=[]),
                        attr="add_",
                    )
                ) as added
            )
        ]:
            return _added(target, scale, added)
        case [
            ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="mul_"), args=[scale], keywords=[])),
            ast.Expr(value=ast.Call(func=ast.Attribute(value=again, attr="add_")) as added),
        ] if ast.unparse(target) == ast.unparse(again):
            return _added(target, scale, added)
    return None


def _added(target: ast.expr, scale: ast.expr, added: ast.Call) -> _Written | None:
    """``target * scale + value``, the value times ``alpha`` where that is given."""
    match added:
        case ast.Call(args=[value], keywords=[]):
            return _Written(target, value, scale)
        case ast.Call(args=[value], keywords=[ast.keyword(arg="alpha", value=factor)]):
            return _Written(target, value, scale, factor)
        case ast.Call(args=[factor, value], keywords=[]):
            return _Written(target, value, scale, factor)
    return None
