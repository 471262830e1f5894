"""Whether a module gives back an array of the shape that it was given: what a scan carries may not change it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import bound_names
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with

Names = frozenset[str]


class KeptShapes:
    """Follows a value through the forward passes of one file. Broadcasting is taken to go its usual way.

    A sum has the shape of the value that is carried, whatever is added to it: where that is larger, the scan raises.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self._known: dict[ClassInfo, bool] = {}

    def of_module(self, fact: Fact) -> bool:
        """Whether a call of the module with an array gives one of its shape."""
        match fact:
            case Instance(cls=cls):
                if cls.info not in self._known:
                    self._known[cls.info] = False  # until it is known, for modules inside themselves
                    self._known[cls.info] = self._of_class(cls.info)
                return self._known[cls.info]
            case Layer(items=tuple() as items):
                return all(map(self.of_module, items))
            case Layer(name=name, node=node):
                if name in names_with(Trait.SAME_SHAPE) or name in LAYERS and LAYERS[name].elementwise:
                    return True
                return name in names_with(Trait.LINEAR) and node is not None and _is_square(node)
            case _:
                return False

    def _of_class(self, info: ClassInfo) -> bool:
        forward = info.method("forward")
        if forward is None or info.has_own_call or not isinstance(forward.node, ast.FunctionDef):
            return False
        parameters = symbols.positional_parameters(forward.node)
        if len(parameters) < 2:
            return False
        ends = _Ends()
        self._after(forward.node.body, frozenset({parameters[1].arg}), ends)
        return ends.some and ends.kept

    def _after(self, body: Sequence[ast.stmt], names: Names, ends: _Ends) -> Names:
        """The names that have the shape after some statements, of those that have it before."""
        for node in body:
            names = self._statement(node, names, ends)
        return names

    def _statement(self, node: ast.stmt, names: Names, ends: _Ends) -> Names:
        match node:
            case ast.Return(value=value):
                ends.some = True
                ends.kept &= value is not None and self.of_value(value, names)
                return names
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                return names | {name} if self.of_value(value, names) else names - {name}
            case ast.AugAssign():
                return names  # what is written in place keeps its shape
            case ast.If(body=body, orelse=orelse):
                return self._after(body, names, ends) & self._after(orelse, names, ends)
            case ast.With(body=body):
                return self._after(body, names - bound_names([node]), ends)
            case ast.For(body=body):
                names -= bound_names([node]) - bound_names(body)
                kept = names
                while (after := kept & self._after(body, kept, ends)) != kept:
                    kept = after
                return kept
            case ast.Expr() | ast.Assert() | ast.Pass() | ast.Raise():
                return names
            case _:
                ends.kept &= not any(isinstance(n, ast.Return) for n in symbols.walk(node))
                return names - bound_names([node])

    def of_value(self, node: ast.expr, names: Names) -> bool:
        """Whether an expression has the shape that some names have."""
        match node:
            case ast.Name(id=name):
                return name in names
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
                return self.of_value(left, names) or self.of_value(right, names)
            case ast.IfExp(body=body, orelse=orelse):
                return self.of_value(body, names) and self.of_value(orelse, names)
            case ast.Call(func=func, args=[first, *_]) if isinstance(fact := self.inference.fact(func), Qual):
                return fact.name in names_with(Trait.ELEMENTWISE) and self.of_value(first, names)
            case ast.Call(func=func, args=[first, *_]) if is_module(fact := self.inference.fact(func)):
                return self.of_module(fact) and self.of_value(first, names)
            case ast.Call(func=ast.Attribute(value=owner, attr=method)):
                alike = names_with(Trait.ELEMENTWISE_METHOD) | names_with(Trait.SAME_VALUES)
                return method in alike and self.of_value(owner, names)
            case _:
                return False


class _Ends:
    """Whether a function returned something, and only what has the shape."""

    def __init__(self) -> None:
        self.some = False
        self.kept = True


def _is_square(node: ast.Call) -> bool:
    """Whether a layer of as many inputs as outputs is made."""
    match node.args:
        case [ins, outs, *_]:
            return ast.dump(ins) == ast.dump(outs)
    return False
