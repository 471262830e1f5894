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

CONVOLUTIONS = (f"Conv{kind}{rank}d" for kind in ("", "Transpose") for rank in (1, 2, 3))
NORMS = (*(f"BatchNorm{rank}d" for rank in (1, 2, 3)), "SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm")
RECURRENT = (f"{name}{cell}" for name in ("RNN", "LSTM", "GRU") for cell in ("", "Cell"))
trait(Trait.DRAWN_ANEW, *(f"torch.nn.{n}" for n in ("Linear", "Embedding", *CONVOLUTIONS, *NORMS, *RECURRENT)))
