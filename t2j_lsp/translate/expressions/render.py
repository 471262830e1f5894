"""Renders expressions: what has a rule is rewritten, everything else is copied with its children rendered."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from t2j_lsp.translate.rule.precedence import Piece

from .annotations import Annotations
from .attributes import Attributes
from .calls import Calls
from .comprehensions import Comprehensions
from .context import Context
from .copying import Copier
from .in_place import InPlace
from .layers import Layers
from .library_objects import LibraryObjects
from .module_methods import ModuleMethods
from .needs import Needs
from .operators import Operators
from .rule_application import RuleApplication
from .site import CallSite
from .subscripts import Subscripts
from .tensor_methods import TensorMethods
from .variables import Variables

Handler = Callable[[Any], Piece | None]
"""What an expression of one kind becomes; None where it is copied, or another handler knows."""


class Renderer:
    """Asks the handlers of an expression's kind in turn. Each expression is rendered once."""

    def __init__(self, context: Context, needs: Needs) -> None:
        self.ctx = context
        self.needs = needs
        self.rendered: dict[ast.expr, Piece] = {}
        """Each expression with its code: a second look must not report or hoist again."""
        self.variables = Variables(context, self)
        self.copier = Copier(context, self, self.variables)
        self.annotations = Annotations(context, self)
        self.subscripts = Subscripts(context, self, self.copier)
        self.in_place = InPlace(context, self, self.variables, self.copier, self.subscripts)
        site = partial(CallSite, context, needs, self.variables)
        self.layers = Layers(context, self, self.copier, site)
        self.methods = ModuleMethods(context, self, self.copier)
        self._handlers = self._by_kind(RuleApplication(context, self, site))

    def _by_kind(self, rules: RuleApplication) -> dict[type[ast.AST], tuple[Handler, ...]]:
        """The handlers of each kind of expression; the first that answers is right."""
        context, copier = self.ctx, self.copier
        tensors = TensorMethods(context, copier, rules, self.in_place)
        calls = Calls(context, self, copier, rules, self.in_place, self.layers, self.methods, tensors)
        objects = LibraryObjects(context, self, copier, rules, self.annotations)
        attributes = Attributes(context, self, self.variables, rules, objects)
        operators = Operators(context, self, copier)
        comprehensions = Comprehensions(context, self, copier)
        return {
            ast.Call: (operators.known, self.methods.first_parameter, calls.call),
            ast.Name: (objects.name,),
            ast.Attribute: (attributes.attribute,),
            ast.Subscript: (self.annotations.subscript, self.subscripts.subscript),
            ast.Constant: (self.annotations.string,),
            ast.Compare: (operators.compare,),
            ast.UnaryOp: (operators.known, operators.negation),
            ast.BoolOp: (operators.boolean,),
            ast.IfExp: (operators.conditional,),
            ast.Lambda: (comprehensions.function,),
            **dict.fromkeys(
                (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), (comprehensions.comprehension,)
            ),
            ast.JoinedStr: (comprehensions.fstring,),
        }

    def render(self, node: ast.expr) -> Piece:
        """The JAX code of one expression."""
        if getattr(node, "lineno", 1) == 0:
            return Piece("")
        done = self.rendered.get(node)
        if done is None:
            done = self._rewritten(node) or self.copier.generic(node)
            if node in self.ctx.plan.layout.natural or node in self.ctx.plan.layout.wanted:
                moved = self.ctx.plan.layout.wrap(node, done.text, self.need("jnp"))
                done = Piece(moved) if moved is not None else done
            self.rendered[node] = done
        return done

    def _rewritten(self, node: ast.expr) -> Piece | None:
        """What a handler makes of an expression: a planner's for this one, else those of its kind."""
        if node in self.ctx.scope.renamed:
            return Piece(self.ctx.scope.renamed[node])
        planned = self.ctx.plan.expression_handlers.get(node)
        if planned is not None and (piece := planned(self)) is not None:
            return piece
        for handler in self._handlers.get(type(node), ()):
            if (piece := handler(node)) is not None:
                return piece
        return None

    def put(self, node: ast.expr, piece: Piece) -> None:
        """Say what an expression becomes, before it is rendered."""
        self.rendered[node] = piece

    def argument(self, node: ast.expr) -> Piece:
        """An argument of a call: a variable is read with ``[...]``."""
        return self.variables.read(node, self.render(node))

    def need(self, name: str) -> str:
        """A helper or imported name for the output, renamed if the user's code has taken it."""
        self.needs.claim(frozenset({name.partition(".")[0]}), self.ctx)
        return self.needs.text(name)
