"""Renders expressions: what has a rule is rewritten, everything else is copied with its children rendered."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property
from typing import Any

from t2j_lsp.translate.rule.facts import Function, Qual
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
from .module_methods import FIRST, ModuleMethods
from .needs import NeededNames
from .operators import KNOWN, Operators
from .rule_application import CallSite, RuleApplication
from .subscripts import Subscripts
from .tensor_methods import TensorMethods
from .variables import Variables

Handler = Callable[[Any], Piece | None]
"""What an expression of one kind becomes; None where it is copied, or another handler knows."""


class Renderer:
    """Asks the handlers of an expression's kind in turn. Each expression is rendered once."""

    def __init__(self, context: Context, needs: NeededNames) -> None:
        self.ctx = context
        self.needs = needs
        self.rendered: dict[ast.expr, Piece] = {}
        """Each expression with its code: a second look must not report or hoist again."""
        self.copier = Copier(context, self, lambda: self.variables)
        self._handlers: dict[type[ast.expr], tuple[Handler, ...]] = {}
        """Those of the kinds that the file was found to have."""
        self._parts: dict[type[ast.expr], Callable[[], tuple[Handler, ...]]] = {
            ast.Call: self._of_calls,
            ast.Name: lambda: (self._name,),
            ast.Attribute: lambda: (self.attributes.attribute,),
            ast.Subscript: lambda: (self.subscripts.subscript,),
            ast.Compare: lambda: (self.operators.compare,),
            ast.UnaryOp: lambda: (self.operators.known, self.operators.negation),
            ast.BoolOp: lambda: (self.operators.boolean,),
            ast.IfExp: lambda: (self.operators.conditional,),
            ast.Lambda: lambda: (self.comprehensions.function,),
            ast.ListComp: lambda: (self.comprehensions.comprehension,),
            ast.SetComp: lambda: (self.comprehensions.comprehension,),
            ast.DictComp: lambda: (self.comprehensions.comprehension,),
            ast.GeneratorExp: lambda: (self.comprehensions.comprehension,),
            ast.JoinedStr: lambda: (self.comprehensions.fstring,),
        }

    def _of_kind(self, kind: type[ast.expr]) -> tuple[Handler, ...]:
        """The handlers of a kind of expression; the first that answers is right."""
        found = self._handlers.get(kind)
        if found is None:
            found = self._handlers[kind] = self._parts[kind]() if kind in self._parts else ()
        return found

    def _of_calls(self) -> tuple[Handler, ...]:
        has = self.ctx.inference.has
        known: tuple[Handler, ...] = (self.operators.known,) if has(KNOWN) else ()
        first: tuple[Handler, ...] = (self.methods.first_parameter,) if has(FIRST) else ()
        return (*known, *first, self.calls.call)

    def _name(self, node: ast.Name) -> Piece | None:
        """A name that is read, where it is known for a library's object or a function."""
        known = isinstance(node.ctx, ast.Load) and isinstance(self.ctx.fact(node), Qual | Function)
        return self.objects.value(node) if known else None

    # --- the parts, each made when it is first asked for ----------------------------------------------------------

    @cached_property
    def variables(self) -> Variables:
        return Variables(self.ctx, self)

    @cached_property
    def annotations(self) -> Annotations:
        return Annotations(self.ctx, self)

    @cached_property
    def subscripts(self) -> Subscripts:
        return Subscripts(self.ctx, self, self.copier)

    @cached_property
    def in_place(self) -> InPlace:
        return InPlace(self.ctx, self, self.variables, self.copier, self.subscripts)

    @cached_property
    def layers(self) -> Layers:
        return Layers(self.ctx, self, self.copier, self._site)

    @cached_property
    def methods(self) -> ModuleMethods:
        return ModuleMethods(self.ctx, self, self.copier)

    @cached_property
    def rules(self) -> RuleApplication:
        return RuleApplication(self.ctx, self, self._site)

    @cached_property
    def tensors(self) -> TensorMethods:
        return TensorMethods(self.ctx, self.copier, self.rules, self.in_place)

    @cached_property
    def calls(self) -> Calls:
        return Calls(
            self.ctx,
            self,
            self.copier,
            self.rules,
            in_place=lambda: self.in_place,
            layers=lambda: self.layers,
            methods=lambda: self.methods,
            tensors=lambda: self.tensors,
        )

    @cached_property
    def objects(self) -> LibraryObjects:
        return LibraryObjects(self.ctx, self, self.copier, self.rules)

    @cached_property
    def attributes(self) -> Attributes:
        return Attributes(self.ctx, self, self.variables, self.rules, self.objects)

    @cached_property
    def operators(self) -> Operators:
        return Operators(self.ctx, self, self.copier)

    @cached_property
    def comprehensions(self) -> Comprehensions:
        return Comprehensions(self.ctx, self, self.copier)

    def _site(self, node: ast.expr, name: str) -> CallSite:
        return CallSite(self.ctx, self.needs, lambda: self.variables, node, name)

    # --- rendering ------------------------------------------------------------------------------------------------

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
        if self.ctx.scope.annotation and (piece := self.annotations.piece(node)) is not None:
            return piece
        for handler in self._of_kind(type(node)):
            if (piece := handler(node)) is not None:
                return piece
        return None

    def put(self, node: ast.expr, piece: Piece) -> None:
        """Say what an expression becomes, before it is rendered."""
        self.rendered[node] = piece

    def argument(self, node: ast.expr) -> Piece:
        """An argument of a call: a variable is read with ``[...]``."""
        piece = self.render(node)
        return self.variables.read(node, piece) if isinstance(node, ast.Attribute) else piece

    def need(self, name: str) -> str:
        """A helper or imported name for the output, renamed if the user's code has taken it."""
        self.needs.claim(frozenset({name.partition(".")[0]}), self.ctx)
        return self.needs.text(name)
