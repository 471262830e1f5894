"""The text of a module of helpers."""

from __future__ import annotations

from collections.abc import Sequence

from t2j_lsp.contract import HELPERS_DOCSTRING
from t2j_lsp.translate.source.helpers import Helper

from .imports import sort_imports


def module_text(helpers: Sequence[Helper], newline: str = "\n") -> str:
    """The text of a module with these helpers, under their own names."""
    imports = "\n".join(sort_imports({line for helper in helpers for line in helper.imports}))
    blocks = [f"{HELPERS_DOCSTRING}\n\n{imports}".rstrip(), *(helper.text.rstrip("\n") for helper in helpers)]
    return ("\n\n\n".join(blocks) + "\n").replace("\n", newline)
