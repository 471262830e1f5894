"""Which values are Python's numbers, and where containers hold some, by what calls give for parameters.

``temp * 2`` is a number in ``forward(self, x, temp)`` where ``net(x, 0.5)`` is what runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, function_around, named_parameters
from t2j_lsp.translate.inference.call_sites import bound_arguments, defaults, facts_given
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Qual, Scalar, Tuple

from .static_values import run_by

DEPTH = 6
"""How many calls and variables are followed."""
_OF_ANYTHING = frozenset({"len", "int", "float", "bool", "round"})
_OF_NUMBERS = frozenset({"min", "max", "abs", "sum", "pow"})


@dataclass
class NumbersIn:
    """What is known of a value: whether it is a number, and what is known of its items by their keys."""

    number: bool = False
    items: dict[str | int, NumbersIn] = field(default_factory=dict)

    @property
    def has_numbers(self) -> bool:
        """Whether it is a number, or holds one at any depth."""
        return self.number or any(one.has_numbers for one in self.items.values())


@dataclass(frozen=True)
class PassedValue:
    """What a call gives for a parameter, in the code around it."""

    value: ast.expr
    known: Mapping[str, PassedValue]


_NOTHING: Mapping[str, PassedValue] = {}


def is_number(fact: Fact) -> bool:
    """Whether a fact is that of a number or a switch."""
    return isinstance(fact, Scalar) and fact.kind in ("int", "float", "bool")


class HeldNumbers:
    """Those of one file."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.open: list[tuple[str, ast.AST | None]] = []
        """The variables that are being followed."""

    def of(self, node: ast.expr, known: Mapping[str, PassedValue] = _NOTHING, depth: int = 0) -> NumbersIn:
        """What is known of an expression, with what is ``known`` of the parameters around it."""
        fact = self.inference.fact(node)
        if is_number(fact):
            return NumbersIn(number=True)
        if depth > DEPTH or is_known(fact) and not isinstance(fact, Tuple | ListOf):
            return NumbersIn()
        match node:
            case ast.Tuple(elts=values) | ast.List(elts=values):
                return NumbersIn(items={at: self.of(value, known, depth) for at, value in enumerate(values)})
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                named = [(k.value, v) for k, v in pairs if isinstance(k, ast.Constant) and isinstance(k.value, str)]
                return NumbersIn(items={key: self.of(value, known, depth) for key, value in named})
            case ast.Name(id=name):
                return self._variable(node, name, known, depth + 1)
            case ast.Call():
                return self._call(node, known, depth + 1)
        return NumbersIn(number=self._is_computed(node, known, depth))

    def _is_computed(self, node: ast.expr, known: Mapping[str, PassedValue], depth: int) -> bool:
        """Whether a number is computed of numbers."""
        match node:
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                parts: Sequence[ast.expr] = [left, right]
            case ast.UnaryOp(operand=operand):
                parts = [operand]
            case ast.BoolOp(values=values):
                parts = values
            case ast.Compare(left=left, comparators=comparators):
                parts = [left, *comparators]
            case _:
                return False
        return all(self.of(part, known, depth).number for part in parts)

    def _variable(self, node: ast.Name, name: str, known: Mapping[str, PassedValue], depth: int) -> NumbersIn:
        """What every assignment of a variable gives it, and what is put into it."""
        function = function_around(node, self.inference.source.parents)
        if (name, function) in self.open:
            return NumbersIn(number=True)  # temp = temp * 2 is what it was
        given: list[NumbersIn] = [self.of(known[name].value, known[name].known, depth)] if name in known else []
        if isinstance(function, FunctionNode) and any(one.arg == name for one in named_parameters(function)):
            facts = [] if name in known else list(facts_given(self.inference, node))
            given += [NumbersIn(number=is_number(fact)) for fact in facts or ([] if given else [UNKNOWN])]
        self.open.append((name, function))
        held = self.assigned(name, [function or self.inference.source.tree], known, depth, given)
        self.open.pop()
        return held

    def assigned(
        self,
        name: str,
        code: Sequence[ast.AST],
        known: Mapping[str, PassedValue] = _NOTHING,
        depth: int = 0,
        given: Sequence[NumbersIn] = (),
    ) -> NumbersIn:
        """What some code makes of a variable that has one of the ``given`` values in front of it."""
        values, put = [*given], NumbersIn()
        for one in (n for part in code for n in symbols.walk(part)):
            match one:
                case ast.Name(id=target, ctx=ast.Store()) if target == name:
                    values.append(self._stored(one, known, depth))
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(key)))]):
                    if owner == name:
                        put.items[key] = self.of(one.value, known, depth)
        held = _joined(values)
        return NumbersIn(held.number, held.items | put.items)

    def _stored(self, target: ast.Name, known: Mapping[str, PassedValue], depth: int) -> NumbersIn:
        """What a variable is given where it is assigned."""
        parents = self.inference.source.parents
        parent = parents[target]
        match parent:
            case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self.of(value, known, depth)
            case ast.Tuple() | ast.List():
                around = parents.get(parent)
                if isinstance(around, ast.Assign):
                    return self.of(around.value, known, depth).items.get(parent.elts.index(target), NumbersIn())
        return NumbersIn(number=is_number(self.inference.fact(target)))

    def _call(self, node: ast.Call, known: Mapping[str, PassedValue], depth: int) -> NumbersIn:
        called = self.inference.fact(node.func)
        builtin = node.func.id if isinstance(node.func, ast.Name) and not is_known(called) else ""
        if builtin in _OF_ANYTHING or isinstance(called, Qual) and called.name.startswith("math."):
            return NumbersIn(number=True)
        if builtin in _OF_NUMBERS:
            return NumbersIn(number=all(self.of(value, known, depth).number for value in node.args))
        if builtin == "dict":
            return NumbersIn(items={k.arg: self.of(k.value, known, depth) for k in node.keywords if k.arg is not None})
        info = run_by(called)
        return self._result(node, info, known, depth) if info is not None and not info.external else NumbersIn()

    def _result(self, call: ast.Call, info: FunctionInfo, known: Mapping[str, PassedValue], depth: int) -> NumbersIn:
        """What a function of the file gives for what a call gives it."""
        given = {parameter.arg: PassedValue(default, {}) for parameter, default in defaults(info)}
        given |= {parameter.arg: PassedValue(value, known) for parameter, value in bound_arguments(call, info)}
        returns = [n for n in symbols.walk(info.node) if isinstance(n, ast.Return) and n.value is not None]
        own = [
            n.value
            for n in returns
            if n.value is not None and function_around(n, self.inference.source.parents) is info.node
        ]
        return _joined([self.of(value, given, depth) for value in own])


def _joined(values: Sequence[NumbersIn]) -> NumbersIn:
    """What is true of a value that is one of several."""
    keys = [key for key in values[0].items if all(key in one.items for one in values)] if values else []
    items = {key: _joined([one.items[key] for one in values]) for key in keys}
    return NumbersIn(bool(values) and all(one.number for one in values), items)
