"""Decorators of classes and functions: those that JAX has no use for go."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .no_gradient import NO_GRAD

DROPPED_DECORATORS = names_with(Trait.DROPPED_DECORATOR)
ABSTRACT = ("abc.abstractmethod", "abc.abstractproperty")
COMPILES = names_with(Trait.COMPILES)


class Decorators:
    """Rewrites or drops decorators."""

    def __init__(self, context: Context, header: Headers) -> None:
        self.ctx = context
        self.header = header

    def rewrite(self, node: ast.expr) -> bool:
        """Drop decorators that JAX has no use for; whether it was ``no_grad``."""
        name = self.name(node)
        if name in NO_GRAD or name in DROPPED_DECORATORS or name in COMPILES or self._only_says_abstract(name):
            start, end = self.ctx.source.span(node)
            line = self.ctx.source.line_of(start)
            last = self.ctx.source.line_of(end)
            stop = self.ctx.source.starts[last] if last < len(self.ctx.source.starts) else end
            self.ctx.edits.add(self.ctx.source.starts[line - 1], stop, "")
            if name in COMPILES:
                self.ctx.report.note(
                    node, name, "note", f"{name} is dropped; put the training or inference step under nnx.jit"
                )
            return name in NO_GRAD
        self.header.expression(ast.Module([], []), "value", node)
        return False

    def _only_says_abstract(self, name: str) -> bool:
        """Whether it is ``abstractmethod`` in a module that no ABC is a base of: Flax's modules are held to it."""
        owner = self.ctx.scope.class_info
        if name not in ABSTRACT or owner is None or not owner.is_module or self.ctx.scope.functions:
            return False
        keywords = [k for cls in owner.ancestry() for k in cls.node.keywords]
        bases = [base.name for cls in owner.ancestry() for base in cls.bases if isinstance(base, Qual)]
        return not keywords and "abc.ABC" not in bases

    def name(self, node: ast.expr) -> str:
        """The qualified name of a decorator; empty where it isn't known."""
        fact = self.ctx.fact(node.func if isinstance(node, ast.Call) else node)
        return fact.name if isinstance(fact, Qual) else ""
