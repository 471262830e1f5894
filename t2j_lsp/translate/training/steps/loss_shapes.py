"""Whether a loss may be an array of one element, which PyTorch's ``backward()`` takes and ``jax.grad`` doesn't.

``loss = (reward - value) ** 2`` of one state has the axes of what a layer gave, ``torch.zeros(1)`` has one.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Layer, Object, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, is_loss, names_with
from t2j_lsp.translate.source.assignments import one_by_one

_MAKES_TENSOR = names_with(Trait.MAKES_TENSOR)
_OF_EVENTS = ("log_prob", "entropy")
_OF_DIFFERENCES = ("pow", "square", "abs")
DEPTH = 12


@dataclass(frozen=True)
class _Code:
    """Where variables are given their values: some code, and what a function that it is was called with, and where."""

    parts: Collection[ast.AST]
    arguments: Mapping[str, tuple[ast.expr, _Code]] = field(default_factory=dict)


class LossShapes:
    """Asks what a loss is made of, in the code of one step."""

    def __init__(self, inference: Inference, parts: Sequence[ast.AST]) -> None:
        self.inference = inference
        self.parts = parts

    def may_be_array(self, loss: ast.expr) -> bool:
        """Whether a loss has axes, or nothing tells how many, and code that computes it makes an array of one."""
        fact = self.inference.fact(loss)
        if isinstance(fact, Tensor) and fact.rank is not None:
            return fact.rank > 0
        if self._has_axes(loss, _Code(self.parts), 0):
            return True
        code = [*self.parts, *(info.node for info in reached_functions(self.inference, self.parts))]
        return any(self._makes_one(node) for part in code for node in symbols.walk(part))

    def _makes_one(self, node: ast.AST) -> bool:
        """Whether a call makes an array of one that isn't known to hold an integer: ``torch.tensor([0.0])``.

        A tensor's own method gives something of it (``x.squeeze(1)``), if it isn't one that makes another
        (``x.new_zeros(1)``).
        """
        match node:
            case ast.Call(func=func, args=[ast.Constant(value=1) | ast.List(elts=[_]) | ast.Tuple(elts=[_])]):
                if isinstance(func, ast.Attribute) and isinstance(self.inference.fact(func.value), Tensor):
                    if func.attr not in _MAKES_TENSOR:
                        return False
                fact = self.inference.fact(node)
                return isinstance(fact, Tensor) and fact.rank in (None, 1) and fact.dtype not in ("int", "bool")
        return False

    # --- what a layer gave ----------------------------------------------------------------------------------------

    def _has_axes(self, node: ast.expr, code: _Code, depth: int, squared: bool = False) -> bool:
        """Whether an expression is made, element by element, of what a layer or a distribution gives for a batch.

        ``code`` is where its variables are given their values. What a module gives of which nothing is known may be a
        loss, if it isn't ``squared``.
        """
        fact = self.inference.fact(node)
        if isinstance(fact, Tensor) and fact.rank is not None:
            return fact.rank > 0
        if depth > DEPTH or isinstance(fact, Scalar):
            return False
        match node:
            case ast.Name(id=name):
                if name in code.arguments:
                    value, where = code.arguments[name]
                    return self._has_axes(value, where, depth + 1, squared)
                return any(self._part_has(v, i, code, depth + 1, squared) for v, i in _given(code.parts, name))
            case ast.BinOp(left=left, op=op, right=right):
                squared = squared or isinstance(op, ast.Pow)
                return any(self._has_axes(one, code, depth + 1, squared) for one in (left, right))
            case ast.Subscript(value=inner, slice=index) if self._is_one_of(inner, index):
                return False
            case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
                return self._has_axes(inner, code, depth + 1, squared)
            case ast.IfExp(body=body, orelse=orelse):
                return any(self._has_axes(one, code, depth + 1, squared) for one in (body, orelse))
            case ast.Call():
                return self._part_has(node, None, code, depth + 1, squared)
        return False

    def _is_one_of(self, array: ast.expr, index: ast.expr) -> bool:
        """Whether an index picks one element of an array with one axis: it isn't known to have axes itself."""
        of, at = self.inference.fact(array), self.inference.fact(index)
        several = isinstance(index, ast.Slice | ast.Tuple | ast.List) or isinstance(at, Tensor) and bool(at.rank)
        return isinstance(of, Tensor) and of.rank == 1 and not several

    def _part_has(self, node: ast.expr, index: int | None, code: _Code, depth: int, squared: bool) -> bool:
        """The same of a value, or of a part of it: ``_, value = net(state)``."""
        if not isinstance(node, ast.Call):
            return index is None and self._has_axes(node, code, depth, squared)
        called = self.inference.fact(node.func)
        if isinstance(called, Layer):
            return not is_loss(called)
        if (info := self._run_by(node)) is not None:
            given = {parameter.arg: (value, code) for parameter, value in bound_arguments(node, info)}
            inner = _Code([info.node], given)
            returned = () if info.external else _returned(info, index)
            return any(self._part_has(value, None, inner, depth + 1, squared) for value in returned)
        if is_module(called):
            return squared
        return index is None and self._method_has(node, code, depth, squared)

    def _method_has(self, node: ast.Call, code: _Code, depth: int, squared: bool) -> bool:
        """The same of a call of PyTorch's: what it is given, or its tensor, has axes."""
        given = [*node.args, *(k.value for k in node.keywords)]
        match node.func:
            case ast.Attribute(attr="squeeze", value=owner):
                if len(given) == (0 if isinstance(self.inference.fact(owner), Tensor) else 1):
                    return False
            case ast.Attribute(attr=attr, value=owner) if attr in _OF_EVENTS:
                of = self.inference.fact(owner)
                return isinstance(of, Object) and of.kind == "distribution"
            case ast.Attribute(value=owner) if isinstance(self.inference.fact(owner), Tensor):
                given = [owner, *given]
            case _ if not isinstance(self.inference.fact(node), Tensor):
                return False
        squared = squared or isinstance(node.func, ast.Attribute) and node.func.attr in _OF_DIFFERENCES
        return any(self._has_axes(one, code, depth + 1, squared) for one in given)

    def _run_by(self, node: ast.Call) -> FunctionInfo | None:
        fact = self.inference.fact(node.func)
        if isinstance(fact, Instance):
            return fact.cls.info.method("forward")
        return called_function(fact)


def _given(code: Collection[ast.AST], name: str) -> Iterator[tuple[ast.expr, int | None]]:
    """What some code gives a variable, with the place of what it is given where that is a part of the value."""
    for part in code:
        for node in symbols.walk(part):
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for one, value in one_by_one(target, node.value):
                    if isinstance(one, ast.Name) and one.id == name:
                        yield value, None
                    for index, item in enumerate(one.elts if isinstance(one, ast.Tuple) else ()):
                        if isinstance(item, ast.Name) and item.id == name:
                            yield value, index


def _returned(info: FunctionInfo, index: int | None) -> Iterator[ast.expr]:
    """What a function gives, or one of several values of it."""
    for node in symbols.own_nodes(info.node):
        match node:
            case ast.Return(value=ast.Tuple(elts=elts)) if index is not None:
                if index < len(elts):
                    yield elts[index]
            case ast.Return(value=ast.expr() as value) if index is None:
                yield value
