"""Where Python asks whether an array is true: it works eagerly, and fails under jit."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from t2j_lsp import symbols
from t2j_lsp.translate.inference.host_random import ONCE, is_host_draw
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import UNKNOWN, Object, is_tensor
from t2j_lsp.translate.rule.names import REDUCTIONS

from .context import Context
from .tensor_code import TensorCode

_EXTREMES = ("max", "min")
_REASON = "a condition on array values fails under jit; use jnp.where or jax.lax.cond"


class Truth:
    """Notes on conditions that are arrays, in code that is likely compiled."""

    def __init__(self, context: Context, code: TensorCode) -> None:
        self.ctx = context
        self.code = code

    def condition(self, test: ast.expr) -> None:
        """``if x.sum() > 0``, ``while``, ``assert``, a condition of a comprehension."""
        class_info = self.ctx.scope.class_info
        inside = class_info is not None and class_info.is_module
        if self._asks_tensor(test) and (inside or self.code.is_traced):
            self.ctx.report.note(test, "if", "tensor-branch", _REASON)

    def parts(self, node: ast.expr, asked: Iterable[ast.expr]) -> None:
        """``a or b`` asks for ``a``, ``not a`` and ``b if a else c`` too; what is a condition itself is noted there."""
        if self.code.is_traced and any(map(self._asks_tensor, asked)) and not self._is_condition(node):
            self.ctx.report.note(node, "if", "tensor-branch", _REASON)

    def _is_condition(self, node: ast.AST) -> bool:
        """Whether an expression is a condition, or one of the parts that its condition asks for."""
        parent = self.ctx.source.parents.get(node)
        while isinstance(parent, ast.BoolOp) or isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            node, parent = parent, self.ctx.source.parents.get(parent)
        if isinstance(parent, ast.comprehension):
            return node in parent.ifs
        return isinstance(parent, ast.If | ast.While | ast.Assert | ast.IfExp) and parent.test is node

    def _asks_tensor(self, test: ast.expr) -> bool:
        """Whether a condition is an array, or has one among its parts."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._asks_tensor(inner)
            case ast.BoolOp():
                return any(map(self._asks_tensor, test.values))
            case _:
                return is_tensor(self.ctx.fact(test)) or self._may_be_tensor(test)

    def _may_be_tensor(self, test: ast.expr) -> bool:
        """Whether it is what a function says may be a tensor (``-> bool | Tensor``), or ``.all()`` of such a value.

        What is kept in an attribute or a container and has ``.all()`` is an array as well, if nothing tells what it is.
        """
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in ("all", "any"):
            held = test.func.value
            if test.args or isinstance(held, ast.Constant):
                return False
            return (
                isinstance(held, ast.Subscript | ast.Attribute)
                and self.ctx.fact(held) == UNKNOWN
                or self._is_said(self.code.origin(held))
                or self._compares_unknowns(held)
            )
        return self.ctx.fact(test) == UNKNOWN and (self._is_said(test) or self._is_made_of_tensor(test))

    def _is_made_of_tensor(self, node: ast.expr, follow: bool = True) -> bool:
        """Whether a value of unknown kind is computed from what is taken for a tensor: ``x.abs().max() > 1``.

        A name is followed once, to what it is assigned.
        """
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                return any(self._is_made_of_tensor(side, follow) for side in (left, *node.comparators))
            case ast.BinOp(left=left, right=right):
                return self._is_made_of_tensor(left, follow) or self._is_made_of_tensor(right, follow)
            case ast.IfExp(body=one, orelse=other):
                return any(is_tensor(self.ctx.fact(n)) or self._is_made_of_tensor(n, follow) for n in (one, other))
            case ast.Call(func=ast.Attribute(value=inner, attr=name)):
                reduced = name in REDUCTIONS or name in _EXTREMES
                return self.code.may_be_tensor(node) or reduced and self._is_made_of_tensor(inner, follow)
            case ast.Name() if self.code.is_tensor_in_a_branch(node):
                return True
            case ast.Name() if follow and (origin := self.code.origin(node)) is not node:
                return self._is_made_of_tensor(origin, follow=False)
        return False

    def _compares_unknowns(self, node: ast.expr) -> bool:
        """Whether it is a comparison of values of unknown kind: of what has ``.all()``, numpy's arrays apart."""
        if not isinstance(node, ast.Compare | ast.BinOp):
            return False
        facts = [self.ctx.fact(n) for n in symbols.walk(node) if isinstance(n, ast.Name)]
        return any(fact == UNKNOWN for fact in facts) and not any(isinstance(fact, Object) for fact in facts)

    def _is_said(self, node: ast.expr) -> bool:
        called = self.ctx.fact(node.func) if isinstance(node, ast.Call) else None
        returns = called.info.node.returns if isinstance(called, Function) else None
        return returns is not None and "Tensor" in ast.unparse(returns)


def note_host_draw(ctx: Context, code: Callable[[], TensorCode], node: ast.Call) -> None:
    """Say that ``random.random()`` in a forward pass is drawn once under jit."""
    if is_host_draw(ctx.fact(node.func)) and code().in_module:
        name = ast.unparse(node.func)
        ctx.report.note(node, name, "value-needed", f"{name}() {ONCE}")
