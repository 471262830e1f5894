"""``m.reset_parameters()`` of layers, which Flax's have not: a helper draws their initial values anew."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.module_methods import RESET
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance, layer_names
from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece

from .context import Context
from .handlers import ExpressionRenderer
from .rngs import rngs_expression

RESETS = frozenset({RESET, "reset_running_stats"})
"""Methods of layers that programs ask any module for."""
_OTHERS = "Of PyTorch's layers PReLU, Bilinear and EmbeddingBag keep their values."


class Resets:
    """What calls of ``reset_parameters`` and questions for it become."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def call(self, node: ast.Call, name: str, owner: Fact, receiver: Piece) -> Piece | None:
        """``m.reset_parameters()`` of a layer, or of a module that may be one; None where it stays."""
        layers = layer_names(owner)
        if name != RESET or node.args or node.keywords or not layers <= names_with(Trait.DRAWN_ANEW):
            return None
        if isinstance(owner, Instance) and not layers:
            return None  # no class in sight has the method
        if not layers:
            self.ctx.report.note(node, f"torch.nn.Module.{RESET}", "note", _OTHERS)
        return self._written("reset_layer" if isinstance(owner, Layer) or layers else RESET, receiver.text)

    def of_base(self, node: ast.Call, info: ClassInfo, name: str, receiver: str) -> Piece | None:
        """``super().reset_parameters()`` in a class that derives from a layer."""
        bases = {base for base in info.torch_bases if base in LAYERS}
        if name != RESET or node.args or node.keywords or not bases or not bases <= names_with(Trait.DRAWN_ANEW):
            return None
        return self._written("reset_layer", receiver)

    def question(self, node: ast.Call, asked: str, name: str, owner: Fact) -> Piece | None:
        """``hasattr(m, "reset_parameters")``; a gap where more is asked. None for a class of the file's own."""
        if name not in RESETS or isinstance(owner, Instance):
            return None
        if (asked, name) == ("hasattr", RESET) and layer_names(owner) <= names_with(Trait.DRAWN_ANEW):
            return Piece(f"{self.renderer.need('has_reset_parameters')}({self.renderer.render(node.args[0]).text})")
        reason = f"Flax's layers have no {name}, and are drawn as they are made: make the module anew"
        self.ctx.report.gap(node, f"torch.nn.Module.{name}", "refused", reason)
        return Piece(self.ctx.source.segment(node))

    def _written(self, helper: str, receiver: str) -> Piece:
        return Piece(f"{self.renderer.need(helper)}({receiver}, {rngs_expression(self.ctx)})")
