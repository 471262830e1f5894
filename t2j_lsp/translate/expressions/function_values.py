"""Functions of PyTorch passed as values, alone or with some of their arguments: ``map(torch.sigmoid, xs)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.contract import NOTE_CODES
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.binding import arguments_of, bind
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Partial, Qual, Tensor, is_tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_dtype, is_torch
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import IGNORED, REGISTRY, Call, CannotHoist, Rule
from t2j_lsp.translate.source.folding.definitions import defaults, definition
from t2j_lsp.translate.source.helpers import helpers

from .context import Context
from .given_names import keeps_value, reads_the_same
from .handlers import ExpressionRenderer
from .rule_application import CallSite, Sites

PARTIAL = Gate(words=frozenset({"partial"}))
"""Functions that are given some of their arguments."""
_FUNCTION = "functools.partial"
_DRAWS = "draws random numbers: write a function that is given the generator (rngs) to draw from"
_SHORT = {"input": "x", "self": "x", "other": "y", "tensors": "arrays", "tensor": "x", "obj": "x"}
"""What parameters are called in functions that are written; others keep PyTorch's names."""


@dataclass(frozen=True)
class GivenFunction:
    """A JAX function of the arguments that are still to come: ``head``, and what it is given already."""

    head: str
    fixed: str = ""
    """The arguments that stand in front of the others, and keywords."""


class FunctionValues:
    """What a function of PyTorch becomes where it isn't called: the rule is asked for a call with made-up arguments.

    ``f(a, b)`` gives ``f``, ``f(a, axis=1)`` gives ``functools.partial(f, axis=1)``, and any other expression a lambda.
    """

    def __init__(self, context: Context, renderer: ExpressionRenderer, site: Sites) -> None:
        self.ctx = context
        self.renderer = renderer
        self.site = site

    def value(self, rule: Rule, node: ast.expr) -> Piece | None:
        """``torch.f``; None after saying why there is no such function."""
        if rule.value is not None:
            self.ctx.report.count_converted()
            return Piece(self.renderer.need(rule.value))
        if self._is_partials(node):
            return None
        piece = self._function(rule, node, ast.Call(node, [], []), "")
        if piece is None:
            self._leave(rule, node, f"{rule.name} passed as a value")
        return piece

    def text_of(self, rule: Rule, node: ast.expr) -> str | None:
        """What stands for a function where it is a value, for code that calls it there; None where nothing does."""
        if rule.value is not None:
            return self.renderer.need(rule.value)
        piece = self._function(rule, node, ast.Call(node, [], []), "")
        return piece.text if piece is not None else None

    def partial(self, node: ast.Call) -> Piece | None:
        """``partial(torch.f, dim=1)``, whose arguments are no arrays; None after saying why not, and for others."""
        rule = self.rule_of(node)
        if rule is None:
            return self._again(node)
        if rule.name in names_with(Trait.TRANSPARENT):  # whatever it is given, it changes nothing
            self.ctx.edits.partials[node] = 0
            self.ctx.report.count_converted()
            return Piece(f"{self.renderer.need('contextlib')}.nullcontext")
        given = ast.Call(node.args[0], node.args[1:], node.keywords)
        piece = self._function(rule, node, given, self.renderer.render(node.func).text)
        if piece is None:
            self._leave(rule, node, f"a partial of {rule.name}")
        return piece

    def _again(self, node: ast.Call) -> Piece | None:
        """``partial(softmax, dtype=...)`` of what is a partial already: one of all arguments."""
        fact = self.ctx.fact(node.args[0]) if node.args and self.ctx.fact(node.func) == Qual(_FUNCTION) else None
        more = len(node.args) > 1 or bool(node.keywords)
        if not more or not isinstance(fact, Partial) or not isinstance(fact.function, Qual):
            return None
        name, made = fact.function.name, fact.node
        if not is_torch(name):
            return None
        rule = self.rule_of(made) if made in self.ctx.source.parents else None
        piece = None
        if made is not None and rule is not None and reads_the_same(self.ctx.source, made, node):
            given = {k.arg for k in node.keywords}
            keywords = [*(k for k in made.keywords if k.arg not in given), *node.keywords]
            if all(k.arg is not None for k in keywords):
                whole = ast.Call(made.args[0], [*made.args[1:], *node.args[1:]], keywords)
                piece = self._function(rule, node, whole, self.renderer.render(node.func).text)
        if piece is None:
            reason = f"a partial of a partial of {name} has JAX's keywords to give: write all of them in one"
            self.ctx.report.gap(node, name, "function-value", reason)
        return piece

    def _leave(self, rule: Rule, node: ast.expr, what: str) -> None:
        reason = _DRAWS if rule.random else "has no JAX function with the same arguments"
        self.ctx.report.gap(node, rule.name, "function-value", f"{what} {reason}")

    def rule_of(self, node: ast.Call) -> Rule | None:
        """The rule of the function that a call of ``functools.partial`` is given; None if it isn't one with a rule."""
        if self.ctx.fact(node.func) != Qual(_FUNCTION) or not node.args:
            return None
        fact = self.ctx.fact(node.args[0])
        if not isinstance(fact, Qual) or not is_torch(fact.name) or fact.name in LAYERS:
            return None
        rule = REGISTRY.get(fact.name)
        return rule if rule is not None and rule.emit is not None and rule.signatures[0].parameters else None

    def _is_partials(self, node: ast.expr) -> bool:
        """Whether a function is what a partial is made of, which is rendered as a whole."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Call) and node in parent.args[:1] and self.rule_of(parent) is not None

    def _function(self, rule: Rule, node: ast.expr, given: ast.Call, partial: str) -> Piece | None:
        """The function that takes what a call isn't given yet; ``partial`` is what the file calls functools.partial."""
        if rule.random or rule.emit is None:
            return None
        arguments = [*given.args, *(k.value for k in given.keywords)]
        if any(isinstance(a, ast.Starred) or is_tensor(self.ctx.fact(a)) for a in arguments):
            return None  # an array would be a constant of the function, without a gradient
        signature = rule.signatures[0]
        normal = [p for p in signature.parameters or () if p.kind == "normal"][len(given.args) :]
        named = {k.arg for k in given.keywords}
        coming = {p.name: f"argument{i}_" for i, p in enumerate(normal) if p.default is None and p.name not in named}
        names = list(coming.values())
        made_up = ast.Call(given.func, [*given.args, *(ast.Name(n, ast.Load()) for n in names)], given.keywords)
        bound = bind(signature, made_up, None)
        if bound is None or not names:
            return None

        def is_made_up(argument: ast.expr) -> bool:
            return isinstance(argument, ast.Name) and argument.id in names

        def render(argument: ast.expr) -> Piece:
            return Piece(ast.unparse(argument)) if is_made_up(argument) else self.renderer.argument(argument)

        coming_fact = UNKNOWN if rule.name in names_with(Trait.FROM_VALUES) else Tensor()

        def fact(argument: ast.expr) -> Fact:
            return coming_fact if is_made_up(argument) else self.ctx.fact(argument)

        call_arguments = arguments_of(signature, bound, render, fact, given.keywords)
        try:
            result = rule.emit(Call(signature, call_arguments, _Unhoisted(self.site(node, rule.name)), node))
        except CannotHoist:
            return None
        if not isinstance(result, Piece) or call_arguments.unseen(IGNORED | rule.ignore):
            return None
        piece = self._written(result, coming, arguments, partial, node)
        if piece is not None:
            if isinstance(node, ast.Call):
                self.ctx.edits.partials[node] = len(names)
            self.ctx.report.count_converted()
            if rule.note is not None and arguments:
                self.ctx.report.note(node, rule.name, NOTE_CODES[rule.fidelity], rule.note)
        return piece

    def _written(
        self, result: Piece, coming: dict[str, str], given: Sequence[ast.expr], partial: str, node: ast.expr
    ) -> Piece | None:
        """A function whose value is ``result``, for parameters and what they are called in there."""
        names, compared = list(coming.values()), self._is_compared(node)
        known = as_function(result.text, names)
        if known is not None:
            if not known.fixed:
                return Piece(known.head)
            partial = partial or f"{self.renderer.need('functools')}.partial"
            return None if compared else Piece(f"{partial}({known.head}, {known.fixed})")
        if compared or not all(map(self._stays, given)):
            return None  # a lambda reads what it was given when it is called
        text = result.text
        for name, made_up in coming.items():
            text = re.sub(rf"\b{made_up}\b", _SHORT.get(name, name), text)
        parameters = [_SHORT.get(name, name) for name in coming]
        own = {n.id for n in symbols.walk(ast.parse(result.text)) if isinstance(n, ast.Name)} - set(names)
        if len({*parameters}) < len(parameters) or own & {*parameters}:
            return None
        function = f"lambda {', '.join(parameters)}: {text}"
        return Piece(function if self._stands_alone(node) else f"({function})")

    def _stays(self, given: ast.expr) -> bool:
        """Whether an argument has the same value later."""
        fact = self.ctx.fact(given)
        if isinstance(given, ast.Name):
            return keeps_value(self.ctx.source, given)
        return _is_literal(given) or isinstance(fact, Qual) and is_dtype(fact.name)

    def _stands_alone(self, node: ast.expr) -> bool:
        """Whether an expression of any kind can stand in the place of a node without brackets."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.keyword | ast.Assign) or isinstance(parent, ast.Call) and node in parent.args

    def _is_compared(self, node: ast.expr) -> bool:
        """Whether it matters which function it is: ``act is F.gelu``, a key of a dict."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Compare) or isinstance(parent, ast.Dict) and node in parent.keys


class _Unhoisted(CallSite):
    """The site of a call that isn't made here: nothing can be put in front of it."""

    def __init__(self, site: CallSite) -> None:
        vars(self).update(vars(site))

    def hoist(self, piece: Piece, hint: str, node: ast.expr | None = None) -> Piece | None:
        return None


def as_function(text: str, names: list[str]) -> GivenFunction | None:
    """A call as a function of some of its arguments, if each is one, in order and next to each other.

    Behind them may be what a helper of ours has a name for: it is given by name.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name | ast.Attribute):
        return None
    positions = [a.id if isinstance(a, ast.Name) and a.id in names else "" for a in tree.args]
    first = positions.index(names[0]) if names[0] in positions else len(positions)
    last = first + len(names)
    others = [tree.func, *tree.args[:first], *tree.args[last:], *(k.value for k in tree.keywords)]
    if positions[first:last] != names or any(
        isinstance(n, ast.Name) and n.id in names for other in others for n in symbols.walk(other)
    ):
        return None
    behind = _by_name(tree, last)
    if behind is None:
        return None
    keywords = [ast.unparse(k) for k in tree.keywords if not _is_default(k, tree.func)]
    fixed = [*map(ast.unparse, tree.args[:first]), *behind, *keywords]
    return GivenFunction(ast.unparse(tree.func), ", ".join(fixed))


def _by_name(call: ast.Call, first: int) -> list[str] | None:
    """The positional arguments from one on, as keywords; None if the function isn't a helper, whose names are known."""
    arguments = call.args[first:]
    if not arguments:
        return []
    helper = _helper(call.func)
    if helper is None or helper.args.posonlyargs:
        return None
    names = [a.arg for a in helper.args.args][first:]
    if len(names) < len(arguments) or any(isinstance(a, ast.Starred) for a in arguments):
        return None
    return [f"{name}={ast.unparse(a)}" for name, a in zip(names, arguments, strict=False)]


def _is_default(given: ast.keyword, function: ast.expr) -> bool:
    """Whether a keyword says what a helper takes anyway."""
    helper = _helper(function)
    default = defaults(helper).get(given.arg or "") if helper is not None else None
    return default is not None and ast.unparse(given.value) == ast.unparse(default)


def _helper(function: ast.expr) -> ast.FunctionDef | None:
    """The helper of ours that is called, if it is a function."""
    if not isinstance(function, ast.Name) or function.id not in helpers():
        return None
    node = definition(helpers()[function.id].text)
    return node if isinstance(node, ast.FunctionDef) else None


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
