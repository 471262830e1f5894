"""Decorators of classes and functions: those that JAX has no use for go."""

from __future__ import annotations

import ast
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.memoized import CACHES, memoizes
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import OPTIMIZER_BASE, Qual, is_tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch

from .no_gradient import NO_GRAD

DROPPED_DECORATORS = names_with(Trait.DROPPED_DECORATOR)
ABSTRACT = ("abc.abstractmethod", "abc.abstractproperty")
COMPILES = names_with(Trait.COMPILES)
_KEPT = "a cache keeps what it is given first: under jit that is a traced value, which fails in the next call"


class Decorators:
    """Rewrites or drops decorators."""

    def __init__(self, context: Context, header: Headers, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer
        self.header = header

    def rewrite(self, node: ast.expr) -> bool:
        """Drop decorators that JAX has no use for; whether it was ``no_grad``."""
        name = self.name(node)
        if (
            name in NO_GRAD
            or name == OPTIMIZER_BASE
            or name in DROPPED_DECORATORS
            or name in COMPILES
            or self._only_says_abstract(name)
        ):
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

    def register(self, node: ast.ClassDef) -> None:
        """A dataclass of arrays, which compiled functions can then take and give."""
        line = self.ctx.source.line_of(self.ctx.source.span(node.decorator_list[0])[0])
        at, indent = self.ctx.source.starts[line - 1], " " * node.col_offset
        text = f"{indent}@{self.renderer.need('jax')}.tree_util.register_dataclass{self.ctx.source.newline}"
        self.ctx.edits.add(at, at, text)

    def cached(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        """``@lru_cache`` of what makes arrays of its own: they are made outside of any trace, so that they last.

        So with a function of the user's in its place that keeps what the one below it gave.
        """
        caches = [d for d in node.decorator_list if self._caches(d)]
        if not caches or not any(map(self._makes_tensor, symbols.walk(node))):
            return
        asked = any(is_tensor(self.ctx.fact(n)) for n in symbols.walk(node) if self._is_parameter(n, node))
        if info.owner is not None and not info.static or info.takes_rngs or asked:
            self.ctx.report.note(caches[0], self.name(caches[0]) or ast.unparse(caches[0]), "value-needed", _KEPT)
            return
        line = self.ctx.source.line_of(self.ctx.source.span(caches[-1])[1]) + 1
        at, indent = self.ctx.source.starts[line - 1], " " * node.col_offset
        text = f"{indent}@{self.renderer.need('jax')}.ensure_compile_time_eval(){self.ctx.source.newline}"
        self.ctx.edits.add(at, at, text)

    def _caches(self, decorator: ast.expr) -> bool:
        called = self.ctx.fact(symbols.called_decorator(decorator))
        return self.name(decorator) in CACHES or isinstance(called, Function) and memoizes(called.info)

    def _makes_tensor(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or not is_tensor(self.ctx.fact(node)):
            return False
        called = self.ctx.fact(node.func)
        return isinstance(called, Qual) and is_torch(called.name)

    def _is_parameter(self, node: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef) -> TypeGuard[ast.Name]:
        """Whether a parameter is read."""
        names = symbols.parameter_names(function)
        return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names

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
        return context_name(self.ctx.fact(node.func if isinstance(node, ast.Call) else node), node)
