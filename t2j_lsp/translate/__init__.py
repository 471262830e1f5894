"""From PyTorch text to JAX text: ``translate(source, options) -> Translation``. Pure and fast."""

from .pipeline import translate
from .rule import REGISTRY as registry

__all__ = ["registry", "translate"]
