"""Calls of functions that are one expression, replaced by the expression."""

from __future__ import annotations

import ast
from functools import cache

import libcst as cst

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters

from .constants import LOOSE
from .definitions import defaults, definition, nodes
from .parts import of_parts, words
from .transformer import Transformer, code, transformed

SHORT = 60
"""Characters of an expression that may stand in several places."""


@cache
def expression_of(text: str) -> str | None:
    """The expression that a function returns, if its body is nothing else and it binds no names inside."""
    node = definition(text)
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or node.args.vararg or node.args.kwarg:
        return None
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    value = body[0].value
    binding = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.NamedExpr | ast.Await
    if any(isinstance(inner, binding) for inner in nodes(value)):
        return None
    segment = ast.get_source_segment(text, value)
    return segment if segment is not None and "#" not in segment else None


@cache
def inlined(text: str, function: str) -> str | None:
    """A definition with the calls of a function (its text) replaced by its expression; None where one can't be."""
    called = definition(function)
    expression = expression_of(function)
    assert isinstance(called, ast.FunctionDef) and expression is not None
    inside = list(symbols.walk(ast.parse(expression, mode="eval").body))
    parameters = [a.arg for a in named_parameters(called)]
    free = {n.id for n in inside if isinstance(n, ast.Name)} - set(parameters)
    caller = definition(text)
    bound = {n.id for n in nodes(caller) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in nodes(caller) if isinstance(n, ast.arg)}
    inner = {name for n in inside if isinstance(n, ast.Lambda) for name in symbols.parameter_names(n)}
    if inner & ({*parameters, *bound} | {n.id for n in nodes(caller) if isinstance(n, ast.Name)}):
        return None
    if (free - inner) & bound:
        return None
    counts = {p: sum(isinstance(n, ast.Name) and n.id == p for n in inside) for p in parameters}
    plan = _Plan(called, parameters, counts)
    for node in nodes(caller):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == called.name:
            if not plan.fits(node):
                return None
    name = called.name
    return of_parts(
        text, lambda part: transformed(part, lambda: _Inliner(name, expression, plan)) if name in words(part) else part
    )


class _Plan:
    """Which argument of a call stands for which parameter."""

    def __init__(self, definition: ast.FunctionDef, parameters: list[str], counts: dict[str, int]) -> None:
        self.parameters = parameters
        self.counts = counts
        self.defaults = {name: ast.unparse(value) for name, value in defaults(definition).items()}

    def fits(self, call: ast.Call) -> bool:
        """Whether every parameter gets an argument that may stand where the parameter does, as often as it does."""
        given: dict[str, ast.expr] = dict(zip(self.parameters, call.args, strict=False))
        if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(self.parameters):
            return False
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg not in self.parameters:
                return False
            given[keyword.arg] = keyword.value
        if any(p not in given and p not in self.defaults for p in self.parameters):
            return False
        return all(self.counts[p] <= 1 or isinstance(a, ast.Name | ast.Constant) for p, a in given.items())


class _Inliner(Transformer):
    def __init__(self, name: str, expression: str, plan: _Plan) -> None:
        super().__init__()
        self.name = name
        self.expression = cst.parse_expression(expression)
        self.plan = plan

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not (isinstance(original_node.func, cst.Name) and original_node.func.value == self.name):
            return updated_node
        given = {name: cst.parse_expression(default) for name, default in self.plan.defaults.items()}
        for index, argument in enumerate(updated_node.args):
            name = argument.keyword.value if argument.keyword is not None else self.plan.parameters[index]
            given[name] = argument.value
        made = self.expression.visit(_Substitution(given))
        assert isinstance(made, cst.BaseExpression)
        return _bracketed(made)

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        return updated_node.with_changes(value=_bare(original_node.value, updated_node.value))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=_bare(original_node.value, updated_node.value))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(value=_bare(original_node.value, updated_node.value))


class _Substitution(Transformer):
    def __init__(self, given: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.given = given

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        replacement = self.given.get(original_node.value)
        return _bracketed(replacement.deep_clone()) if replacement is not None else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=_bare(original_node.value, updated_node.value))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        value = _bare(original_node.value, updated_node.value)
        return updated_node.with_changes(keyword=original_node.keyword, value=value)


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, LOOSE) and not node.lpar:
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def _bare(before: cst.BaseExpression | None, after: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """An expression without the brackets that were put around it, where it stands alone."""
    if before is None or after is None or getattr(before, "lpar", None) or not isinstance(after, LOOSE):
        return after
    if len(after.lpar) == 1 and "\n" not in code(after):
        return after.with_changes(lpar=[], rpar=[])
    return after


def with_expressions(body: str, given: dict[str, str]) -> str:
    """Statements of a method's body with expressions put in for names, which they don't assign."""
    text = "class _:\n    def _(self):\n" + body
    expressions = {name: cst.parse_expression(value) for name, value in given.items()}
    return transformed(text, lambda: _Substitution(expressions)).split("\n", 2)[2]
