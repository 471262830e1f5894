"""t2j: PyTorch to JAX migration, in the editor and on the command line.

The public names load on first use, so that ``import t2j_lsp`` stays light: the language server
imports this package and must start in well under a second, without torch and without jax.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2j_lsp.api import check as check
    from t2j_lsp.api import convert as convert
    from t2j_lsp.weights import load_torch_state as load_torch_state
    from t2j_lsp.weights import torch_state as torch_state

__version__ = "0.1.0"
__all__ = ["check", "convert", "load_torch_state", "torch_state"]

_HERE = Path(__file__).parent
if not (_HERE / "rules").is_dir():
    # A checkout: `rules` and `retrieval` stand beside this package and are found there; a wheel holds them inside.
    __path__.append(str(_HERE.parent))

_HOMES = {"convert": ".api", "check": ".api", "load_torch_state": ".weights", "torch_state": ".weights"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
