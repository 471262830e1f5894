"""Which code around a step computes arrays of arrays alone, so that it is the same in the step."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.rule.record import REGISTRY, Rule
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.training.program.flow import DataFlow, is_mode
from t2j_lsp.translate.training.program.once import KnownPrint
from t2j_lsp.translate.training.program.static_values import names_loss

from .host_values import made_of_value
from .jittable import Jittable

PERHAPS = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions that don't evaluate all of their parts once."""


_OF_ALL = re.compile(r"^(total|running|epoch|sum|train)_+|_+(total|sum)$")


class ArrayCode:
    """Looks at expressions and assignments of one scope."""

    def __init__(self, context: Context, flow: DataFlow, jittable: Jittable) -> None:
        self.ctx = context
        self.flow = flow
        self.jittable = jittable

    def assigns(self, node: ast.stmt) -> ast.expr | None:
        """The arrays that a statement gives variables: ``accuracy = (out.argmax(1) == y).float().mean()``."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return None
        (target,) = node.targets
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        return node.value if all(isinstance(one, ast.Name) for one in names) else None

    def is_computed(self, node: ast.expr) -> bool:
        """Whether an expression computes arrays, of nothing that is known when the step is traced alone."""
        inner = [*symbols.walk(node)]
        if not is_array_tree(self.ctx.fact(node)) or self.flow.writes(node):
            return False
        if not any(map(self.is_operation, inner)) or any(map(self._must_stay, inner)):
            return False
        problem = self.jittable.problem(node)
        return problem is None or isinstance(problem, KnownPrint)

    def variables(self, node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
        """Where some code reads variables, but for functions of libraries and of the file."""
        if isinstance(node, ast.Name | ast.Attribute) and self.flow.variable(node) is not None:
            if not self._is_function(node):
                yield node
            return
        for child in symbols.children(node):
            yield from self.variables(child)

    def is_passed(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether a variable holds what a step may be given: an array, or what one is made of, a number, a module."""
        if made_of_value(self.ctx.inference, node) is not None:
            return True
        fact = self.ctx.fact(node)
        number = isinstance(fact, Scalar) and fact.kind in ("int", "float")
        array = isinstance(fact, Tensor) and not fact.variable and node not in self.ctx.plan.kept_tensors
        return number or array or is_module(fact) and not is_loss(fact)

    def changes(self, node: ast.stmt) -> set[str]:
        """What a statement may change: what it writes, gives a function of the file, or sets to a mode."""
        out = set(self.flow.writes(node))
        for inner in symbols.walk(node):
            match inner:
                case ast.Expr(value=ast.Call(func=func) as call):
                    given = called_function(self.ctx.fact(func)) is not None or is_mode(inner)
                    out |= self.flow.reads(call) if given else set()
        return out

    def draws(self, node: ast.AST) -> bool:
        """Whether some code may draw random numbers."""
        for call in (n for n in symbols.walk(node) if isinstance(n, ast.Call)):
            info = called_function(self.ctx.fact(call.func))
            rule = self._rule(call)
            if rule is not None and rule.random or info is not None and (info.takes_rngs or info.reads_rngs):
                return True
        return False

    def _rule(self, call: ast.Call) -> Rule | None:
        fact = self.ctx.fact(call.func)
        if isinstance(fact, Qual):
            return REGISTRY.get(fact.name)
        return REGISTRY.get(f"torch.Tensor.{call.func.attr}") if isinstance(call.func, ast.Attribute) else None

    def _is_function(self, node: ast.expr) -> bool:
        """Whether a name is that of a library, or of a function of the file."""
        fact = self.ctx.fact(node)
        info = called_function(fact)
        own = info is not None and info.owner is None and not info.external
        builtin = isinstance(node, ast.Name) and node.id == "len" and "len" not in self.ctx.inference.env
        return own or builtin or isinstance(fact, Qual)

    def is_operation(self, node: ast.AST) -> bool:
        """Whether it computes something, and doesn't only hand an array on."""
        if isinstance(node, ast.Call):
            rule = self._rule(node)
            return rule is None or rule.result != "same"
        return isinstance(node, ast.Compare | ast.BinOp | ast.Subscript)

    def _must_stay(self, node: ast.AST) -> bool:
        """Whether a call reads more than stands in it, or a part of an expression isn't evaluated once.

        So where a function of the file is given numbers: it may slice by them, or count to them.
        """
        if isinstance(node, ast.Call) and called_function(self.ctx.fact(node.func)) is not None:
            given = [self.ctx.fact(one) for one in (*node.args, *(k.value for k in node.keywords))]
            if any(isinstance(fact, Scalar) and fact.kind in ("int", "float") for fact in given):
                return True
        return isinstance(node, ast.Call) and node in self.flow.passed or isinstance(node, (*PERHAPS, ast.Starred))


def outermost(node: ast.AST, is_wanted: Callable[[ast.expr], bool], handled: Container[ast.AST]) -> Iterator[ast.expr]:
    """The outermost expressions in a statement that are wanted, each of which is evaluated once.

    None of those that stand in ``handled`` ones, whose text is written as a whole: code that stays PyTorch's.
    """
    for child in symbols.children(node):
        if isinstance(child, PERHAPS) or child in handled:
            continue
        if isinstance(child, ast.expr) and is_wanted(child):
            yield child
        else:
            yield from outermost(child, is_wanted, handled)


def measured_name(node: ast.stmt, value: ast.expr) -> str:
    """What a value is called that a statement takes: ``batch_correct`` of ``correct += (...).sum().item()``."""
    match node, value:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"))), _:
            return f"batch_{_OF_ALL.sub('', name)}"
        case ast.AugAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)), _:
            return f"batch_{_OF_ALL.sub('', name)}"
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=one))), _ if one is value:
            return f"batch_{name}"
        case _, ast.Call(func=ast.Attribute() | ast.Name() as func) if names_loss(func):
            return "batch_loss"
        case _, ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
            return f"{name}_{attr}"
    return "measured"
