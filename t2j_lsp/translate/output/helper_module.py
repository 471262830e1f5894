"""The text of a module of helpers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp.contract import HELPERS_DOCSTRING
from t2j_lsp.translate.source.helpers import Helper
from t2j_lsp.translate.source.text import Source

from .imports import sort_imports
from .wrap import wrap_long_lines


def module_text(helpers: Sequence[Helper], newline: str = "\n") -> str:
    """The text of a module with these helpers, under their own names."""
    imports = "\n".join(sort_imports({line for helper in helpers for line in helper.imports}))
    blocks = [f"{HELPERS_DOCSTRING}\n\n{imports}".rstrip(), *(helper.text.rstrip("\n") for helper in helpers)]
    return ("\n\n\n".join(blocks) + "\n").replace("\n", newline)


def module_beside(helpers: Sequence[Helper], source: Source) -> str:
    """The text of the module beside a file, with lines as long as they would be in the file."""
    text = module_text(helpers, source.newline)
    return wrap_long_lines(text, source.given.original or source.text, ast.parse(text), [], source.newline)[0]
