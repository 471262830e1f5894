"""From PyTorch text to JAX text: ``translate(source, options) -> Translation``. Pure and fast."""

from t2j_lsp.translate.inference.neighbours import Neighbours
from t2j_lsp.translate.rule.record import REGISTRY as registry

from .pipeline import draft, translate

__all__ = ["Neighbours", "draft", "registry", "translate"]
