"""Calls of one of several functions of PyTorch, chosen elsewhere: ``pool(x, dim=1)``.

What the name holds are JAX's functions then, so the call has to have arguments that all of them take alike:
``pool(x, axis=1)`` of `jnp.mean` and `jnp.sum`. Each rule is asked for the call as if it alone were meant.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.one_of import OneOf
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket
from t2j_lsp.translate.rule.record import REGISTRY, Rule
from t2j_lsp.translate.source.assignments import values_of
from t2j_lsp.translate.source.folding.definitions import definition
from t2j_lsp.translate.source.helpers import helpers

from .context import Context
from .function_values import FunctionValues
from .handlers import ExpressionRenderer
from .rule_application import RuleApplication

_DEFAULT = "{} is {} by default, whose form in JAX takes other arguments: call it by its name, or in a function"
_PERHAPS = "{} may be {}, whose form in JAX takes other arguments: call it by its name there"
_OTHERS = "{} is one of {}, whose forms in JAX take other arguments: call each by its name"


class OneOfFunctions:
    """What such calls become."""

    def __init__(
        self, context: Context, renderer: ExpressionRenderer, rules: RuleApplication, functions: FunctionValues
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.rules = rules
        self.functions = functions

    def call(self, node: ast.Call, fact: OneOf) -> Piece | None:
        """The call with JAX's arguments; None where it has those already, or after saying that it can't have them."""
        rules = [rule for name in sorted(fact.names) if (rule := REGISTRY.get(name)) is not None]
        if all(_gives_required(node, rule) or self._takes_keywords(node, rule) for rule in rules):
            return None
        given = {self._arguments(node, rule) for rule in rules}
        if len(given) == 1 and (arguments := given.pop()) is not None:
            self.ctx.report.count_converted()
            return Piece(f"{bracket(self.renderer.render(node.func), ATOM)}({arguments})")
        name, those = ast.unparse(node.func), ", ".join(sorted(fact.names))
        self.ctx.report.gap(node, name, "function-value", _OTHERS.format(name, those))
        return None

    def by_default(self, node: ast.Call) -> None:
        """``op(x, 1)`` of a parameter that is ``torch.max`` by default: ``jnp.max`` gives other values."""
        function = self.ctx.scope.function
        if function is None or not isinstance(node.func, ast.Name) or node.keywords:
            return
        defaults = {parameter.arg: value for parameter, value in symbols.defaults(function.node.args)}
        fact = self.ctx.fact(defaults[node.func.id]) if node.func.id in defaults else None
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        if rule is None or rule.emit is None or not rule.signatures[0].parameters or _gives_required(node, rule):
            return
        kept = ", ".join(ast.unparse(argument) for argument in node.args)
        if len(node.args) > 1 and _by_place(self._arguments(node, rule)) != kept:
            self.ctx.report.gap(node, node.func.id, "function-value", _DEFAULT.format(node.func.id, rule.name))

    def perhaps(self, node: ast.Call) -> None:
        """``op(x, dim=1)`` of what is given, or of ``torch.mean`` in the place of None: ``op = op or torch.mean``."""
        facts = [self.ctx.fact(part) for value in self._given(node.func) for part in _parts(value)]
        rules = [rule for fact in facts if isinstance(fact, Qual) and (rule := REGISTRY.get(fact.name)) is not None]
        kept = ", ".join(ast.unparse(argument) for argument in (*node.args, *node.keywords))
        for rule in rules:
            if rule.emit is None or not rule.signatures[0].parameters or _gives_required(node, rule):
                continue
            written = self._arguments(node, rule)
            same = written == kept or not node.keywords and _by_place(written) == kept
            if not same and not self._takes_keywords(node, rule):
                name = ast.unparse(node.func)
                self.ctx.report.gap(node, name, "function-value", _PERHAPS.format(name, rule.name))
                return

    def _given(self, called: ast.expr) -> list[ast.expr]:
        """What a variable is given in the function, or an attribute in the class and its bases."""
        scope = self.ctx.scope
        match called:
            case ast.Name() if scope.function is not None:
                return values_of(scope.function.node, called)
            case ast.Attribute(value=ast.Name()) if scope.class_info is not None:
                return [value for info in scope.class_info.ancestry() for value in values_of(info.node, called)]
        return []

    def _takes_keywords(self, node: ast.Call, rule: Rule) -> bool:
        """Whether what stands for a function is a helper of ours that has a call's keywords, as PyTorch has them."""
        held = self.functions.text_of(rule, node.func)
        helper = helpers().get(held or "")
        made = definition(helper.text) if helper is not None else None
        if not isinstance(made, ast.FunctionDef) or not _gives_required(node, rule, but_for_keywords=True):
            return False
        return {k.arg for k in node.keywords} <= set(symbols.parameter_names(made))

    def _arguments(self, node: ast.Call, rule: Rule) -> str | None:
        """What a call of this function is given in JAX; None where that is no call of what stands for it as a value."""
        current = self.ctx.scope.statement
        before = len(current.before) if current is not None else 0
        written = self.rules.apply(rule, node, None)
        if current is not None and len(current.before) > before:
            del current.before[before:]
            return None
        held = self.functions.text_of(rule, node.func)
        if written is None or held is None:
            return None
        try:
            call = ast.parse(written.text, mode="eval").body
        except SyntaxError:
            return None
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != held:
            return None
        return ", ".join([*map(ast.unparse, call.args), *map(ast.unparse, call.keywords)])


def _parts(value: ast.expr) -> list[ast.expr]:
    """What a value may be: each of ``a or b`` and of ``a if c else b``."""
    match value:
        case ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=one, orelse=other):
            return [one, other]
    return [value]


def _by_place(arguments: str | None) -> str | None:
    """Arguments without their names: ``x, axis=1`` of JAX's functions are in PyTorch's places."""
    return None if arguments is None else ", ".join(text.partition("=")[2] or text for text in arguments.split(", "))


def _gives_required(node: ast.Call, rule: Rule, but_for_keywords: bool = False) -> bool:
    """Whether a call gives by position what has no default, and nothing else: so functions that are values take it."""
    required = [p for p in rule.signatures[0].parameters or () if p.kind == "normal" and p.default is None]
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    return (but_for_keywords or not node.keywords) and not starred and len(node.args) == len(required)
