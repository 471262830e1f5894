"""The functions of the file that stand between a module and a loss: a train step calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.once import filled

from .accumulated import own_expressions
from .cut_off import carrying_gradients


class LossCalls:
    """Looks for them in the statements of a scope, in whatever order these run."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self._reads: dict[ast.AST, bool] = {}
        self._given: dict[ast.stmt, set[str]] = {}

    def of(self, scope: VariableScope) -> list[FunctionInfo]:
        """The functions that statements between a module and a loss of a scope call."""
        statements = [s for s in self.objects.statements(scope) if not isinstance(s, ast.FunctionDef | ast.ClassDef)]
        waiting = self._behind_losses(self._in_front(statements))
        tainted: set[str] = set()
        parts: list[ast.expr] = []
        while depending := [(s, e) for s, e in waiting if self._depends(e, tainted)]:
            waiting = [one for one in waiting if one not in depending]
            parts += [e for _, e in depending]
            tainted |= {name for s, _ in depending for name in self._given_in(s)}
        return [info for part in parts for info in self.called(part)]

    def _in_front(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The statements that run before a backward pass: none behind the last, unless a loop comes back to it."""
        last = 0
        for statement in statements:
            if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
                return statements
            if any(
                isinstance(n, ast.Call) and differentiates(self.ctx.inference, n) for n in own_expressions(statement)
            ):
                last = max(last, statement.end_lineno or 0)
        return [s for s in statements if s.lineno <= last]

    def called(self, node: ast.AST) -> Iterator[FunctionInfo]:
        """The functions of the file that some code calls for more than numbers, but for methods of modules."""
        for inner in self._carrying(node):
            fact = self.ctx.fact(inner.func) if isinstance(inner, ast.Call) else None
            if isinstance(fact, Function) and fact.info.node in self.ctx.inference.functions:
                if not fact.info.external and not (fact.info.owner is not None and fact.info.owner.acts_as_module):
                    yield fact.info

    def _behind_losses(self, statements: Sequence[ast.stmt]) -> list[tuple[ast.stmt, ast.expr]]:
        """The expressions that the losses are made of, each with its statement."""
        out = [
            (s, n.func.value)
            for s in statements
            for n in own_expressions(s)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and differentiates(self.ctx.inference, n)
        ]
        names: set[str] = set()
        at = 0
        while at < len(out):
            new = {
                ast.unparse(n) for n in self._carrying(out[at][1]) if isinstance(n, ast.Name | ast.Attribute)
            } - names
            names |= new
            for statement in statements if new else ():
                if self._given_in(statement) & new:
                    parts = [(statement, part) for part in _parts(statement)]
                    out += [one for one in parts if one not in out]
            at += 1
        return out

    def _given_in(self, node: ast.stmt) -> set[str]:
        """The variables that a statement itself gives a value, or may change."""
        if node not in self._given:
            called = (self.ctx.fact(n.func) for n in own_expressions(node) if isinstance(n, ast.Call))
            kept = (filled(self.ctx.inference, f.info) for f in called if isinstance(f, Function))
            self._given[node] = _given(node).union(*kept)
        return self._given[node]

    def _carrying(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes of some code without what is in calls through which no gradient flows."""
        stack = [node]
        while stack:
            one = stack.pop()
            if isinstance(one, ast.Call) and (few := carrying_gradients(self.ctx, one)) is not None:
                stack += few
                continue
            yield one
            stack += symbols.children(one)

    def _depends(self, node: ast.expr, tainted: set[str]) -> bool:
        """Whether an expression is computed with a module, or with what was."""
        for inner in self._carrying(node):
            if isinstance(inner, ast.Name | ast.Attribute) and (self._is_model(inner) or ast.unparse(inner) in tainted):
                return True
        return any(map(self.reads_module, self.called(node)))

    def _is_model(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        if isinstance(node, ast.Name) and node.id in self.objects.trained.leaves and is_array_tree(fact):
            return True
        return self.objects.trained.is_model(node)

    def reads_module(self, info: FunctionInfo) -> bool:
        """Whether a function, or one that it calls, reads a module from outside."""
        if info.node not in self._reads:
            self._reads[info.node] = False
            own = self.ctx.source.symbols.bound(info.node)
            names = [
                n for n in symbols.walk(info.node) if isinstance(n, ast.Name | ast.Attribute) and self._is_model(n)
            ]
            outside = any(ast.unparse(n).partition(".")[0] not in own - {"self"} for n in names)
            self._reads[info.node] = outside or any(map(self.reads_module, self.called(info.node)))
        return self._reads[info.node]


def _parts(node: ast.stmt) -> list[ast.expr]:
    """The outermost expressions of a statement itself."""
    out: list[ast.expr] = []
    for child in symbols.children(node):
        if isinstance(child, ast.expr):
            out.append(child)
        elif isinstance(child, ast.withitem):
            out.append(child.context_expr)
    return out


def _given(node: ast.stmt) -> set[str]:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return set()
    expressions = [n for n in own_expressions(node) if isinstance(n, ast.Name | ast.Attribute)]
    changes = isinstance(node, ast.Expr | ast.AugAssign)
    return {ast.unparse(n) for n in expressions if changes or not isinstance(n.ctx, ast.Load)}
