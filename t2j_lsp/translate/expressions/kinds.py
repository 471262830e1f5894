"""What kind of layer an object is, where its type is compared: ``type(m) == nn.Linear`` is ``isinstance`` in Flax.

A layer may be made as Flax's own class or as one that derives from it, so that no type can be compared; nor can that of
an array, which is a class of JAX's implementation.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.type_comparisons import TypeComparison, listed, type_comparison
from t2j_lsp.translate.layout.first import shared_base
from t2j_lsp.translate.rule.definitions import Class
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.join import class_names
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.pieces import NOT, Piece

from .context import Context
from .copied_classes import report_compared_class
from .handlers import ExpressionRenderer

_DERIVED = "a class of this file derives from {}, which isn't of its type and is an instance of it: ask for its class"
_HELD = "layers may be made as classes that derive from those of Flax, so that types can't be compared: use isinstance"


class Kinds:
    """Writes comparisons of types."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def compared(self, node: ast.Compare) -> Piece | None:
        """``isinstance(m, nnx.Linear)``; None for comparisons of other things, and after saying why it stays."""
        asked = type_comparison(node)
        if asked is None:
            report_compared_class(self.ctx, node)
            return None
        names = {n for c in listed(asked.classes) for n in class_names(self.ctx.fact(c))}
        layers = {n for n in names if n in LAYERS}
        if not layers and "torch.Tensor" not in names:
            return None
        if layers and (reason := self._problem(asked, layers)) is not None:
            self.ctx.report.gap(node, ast.unparse(asked.classes), "unsure", reason)
            return None
        text = ", ".join(self.renderer.argument(c).text for c in listed(asked.classes))
        many = isinstance(asked.classes, ast.Tuple | ast.List | ast.Set)
        subject = self.renderer.argument(asked.subject).text
        made = f"isinstance({subject}, {f'({text})' if many and len(listed(asked.classes)) > 1 else text})"
        return Piece(made) if asked.holds else Piece(f"not {made}", NOT)

    def together(self, node: ast.Tuple) -> Piece | None:
        """``(nn.Linear, nn.Conv1d, nn.Conv2d)`` behind ``isinstance``, with two kinds that are one in Flax."""
        match self.ctx.source.parents.get(node):
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]) if classes is node:
                pass
            case _:
                return None
        facts = [self.ctx.fact(item) for item in node.elts]
        shared = [shared_base(fact.name, self.ctx.inference) for fact in facts if isinstance(fact, Qual)]
        flax = [base for base in shared if base is not None]
        if len(set(flax)) == len(flax):
            return None
        texts = list(dict.fromkeys(self.renderer.argument(item).text for item in node.elts))
        return Piece(f"({', '.join(texts)})" if len(texts) > 1 else texts[0])

    def _problem(self, asked: TypeComparison, layers: set[str]) -> str | None:
        """Why isinstance would be another question."""
        if asked.several and not isinstance(asked.classes, ast.Tuple | ast.List | ast.Set):
            made = [n for n in self.ctx.source.nodes if isinstance(n, ast.Assign) and _names(n, asked.classes)]
            if len(made) != 1 or not isinstance(made[0].value, ast.Tuple):
                return _HELD
        classes = [f for c in listed(asked.classes) if isinstance(f := self.ctx.fact(c), Class)]
        for fact in self.ctx.inference.state.classes.values():
            if fact.layer_base in layers or any(c.info in fact.ancestry()[1:] for c in classes):
                return _DERIVED.format(fact.layer_base or "another")
        return None


def _names(made: ast.Assign, name: ast.expr) -> bool:
    return [ast.unparse(target) for target in made.targets] == [ast.unparse(name)]
