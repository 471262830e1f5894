"""Annotations: types in strings, and qualifiers that JAX has no use for."""

from __future__ import annotations

import ast
import re

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece

from .handlers import ExpressionRenderer
from .scope import Scope

TYPES = {("torch.Tensor", "Tensor"): "jax.Array", ("nn.Module",): "nnx.Module"}
"""What stands for a type in a string, by the names that people write."""


class Annotations:
    """What stands in annotations."""

    def __init__(self, inference: Inference, renderer: ExpressionRenderer, scope: Scope) -> None:
        self.inference = inference
        self.renderer = renderer
        self.scope = scope

    def piece(self, node: ast.expr) -> Piece | None:
        """What an expression in an annotation becomes, where it is a qualifier or a string; and a type with a name."""
        if not self.scope.annotation:
            return self._named(node)
        match node:
            case ast.Subscript():
                return self._subscript(node)
            case ast.Constant(value=str() as text):
                return self._string(node, text)
            case _:
                return None

    def _named(self, node: ast.expr) -> Piece | None:
        """``Device = Union[str, torch.device]``: what stands in annotations by its name."""
        if not isinstance(self.inference.source.parents.get(node), ast.Assign | ast.AnnAssign):
            return None
        self.scope.annotation = True
        try:
            return self.renderer.render(node)
        finally:
            self.scope.annotation = False

    def _subscript(self, node: ast.Subscript) -> Piece | None:
        """``torch.jit.Final[bool]`` is ``bool``."""
        fact = self.inference.fact(node.value)
        plain = isinstance(fact, Qual) and fact.name in names_with(Trait.PLAIN_ANNOTATION)
        return self.renderer.render(node.slice) if plain else None

    def _string(self, node: ast.Constant, text: str) -> Piece | None:
        """``"torch.Tensor"``, ``"dict[str, Tensor]"``: a type that is written as a string."""
        try:
            named = {ast.unparse(n) for n in symbols.walk(ast.parse(text.strip(), mode="eval"))}
        except SyntaxError:
            return None
        segment = self.inference.source.segment(node)
        for names, new in TYPES.items():
            for name in names:
                if name in named:
                    self.renderer.need(new)
                    segment = re.sub(rf"(?<![\w.]){re.escape(name)}\b", new, segment)
        return Piece(segment)
