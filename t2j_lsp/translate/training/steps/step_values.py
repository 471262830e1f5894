"""What is known of an expression in a step: the constant that it is, or that it changes from step to step."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Tensor


class Varying:
    """What an expression is that changes from one step to the next."""


VARYING = Varying()
Known = Mapping[str, object]
"""What is known of a function's variables: constants, and `VARYING`."""


Value = tuple[object] | Varying | None
"""A constant, in a tuple; that it changes; None where nothing is known."""


@dataclass
class ValuesOfSteps:
    """Says what expressions are, by what is known of variables and of the attributes of modules."""

    inference: Inference
    varying: Collection[str] = ()
    """Attributes of modules that change while the program runs."""
    constants: Mapping[str, tuple[object]] = field(default_factory=dict)
    """Attributes of modules that are given one constant, when these are made, each in a tuple."""

    def value(self, node: ast.expr, known: Known) -> Value:
        """The constant that an expression is, in a tuple; `VARYING` if it changes; None if nothing is known of it."""
        if isinstance(self.inference.fact(node), Tensor):
            return None
        match node:
            case ast.Constant(value=constant):
                return (constant,)
            case ast.Name(id=name) if name in known:
                one = known[name]
                return VARYING if one is VARYING else (one,)
            case ast.Attribute(attr=attr, value=owner):
                if not is_module(self.inference.fact(owner)):
                    return None
                return VARYING if attr in self.varying else self.constants.get(attr)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                value = self.value(inner, known)
                return (not value[0],) if isinstance(value, tuple) else value
            case ast.BoolOp(op=op, values=values):
                return self._joined(isinstance(op, ast.Or), [self.value(v, known) for v in values])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _compared(op, self.value(left, known), self.value(right, known))
            case ast.BinOp() | ast.Subscript() | ast.IfExp() | ast.Call():
                parts = [self.value(c, known) for c in symbols.children(node) if isinstance(c, ast.expr)]
                return VARYING if VARYING in parts else None
        return None

    def _joined(self, either: bool, values: Sequence[Value]) -> Value:
        if any(isinstance(v, tuple) and bool(v[0]) is either for v in values):
            return (either,)
        if all(isinstance(v, tuple) for v in values):
            return (not either,)
        return VARYING if VARYING in values else None


def stored_names(function: ast.AST) -> set[str]:
    """The variables that a function, or what stands in it, gives values."""
    names = (n for n in symbols.walk(function) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _compared(op: ast.cmpop, left: Value, right: Value) -> Value:
    if isinstance(left, tuple) and isinstance(right, tuple):
        match op:
            case ast.Eq() | ast.Is():
                return (left[0] == right[0],)
            case ast.NotEq() | ast.IsNot():
                return (left[0] != right[0],)
        return None
    if isinstance(op, ast.Is | ast.IsNot):
        return None  # what is given is None or not throughout
    return VARYING if VARYING in (left, right) else None
