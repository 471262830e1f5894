"""Layers whose constructors call ``self.reset_parameters()``, so that a subclass's own gives initial values."""

from __future__ import annotations

from t2j_lsp.translate.rule.library import Trait, trait

trait(
    Trait.RESETS,
    *(f"torch.nn.{name}" for name in ("Linear", "LazyLinear", "Bilinear", "PReLU", "Embedding", "EmbeddingBag")),
    *(f"torch.nn.{name}" for name in ("LayerNorm", "GroupNorm", "RMSNorm", "SyncBatchNorm")),
    *(
        f"torch.nn.{lazy}{kind}Norm{rank}d"
        for lazy in ("", "Lazy")
        for kind in ("Batch", "Instance")
        for rank in (1, 2, 3)
    ),
    *(f"torch.nn.{lazy}Conv{kind}{rank}d" for lazy in ("", "Lazy") for kind in ("", "Transpose") for rank in (1, 2, 3)),
    *(f"torch.nn.{name}{cell}" for name in ("RNN", "LSTM", "GRU") for cell in ("", "Cell")),
)
