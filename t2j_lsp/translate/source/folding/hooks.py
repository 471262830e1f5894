"""Hooks behind calls alone: a program that has none before them needs no place for those."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp.translate.source.helpers import helpers, renamed

from .absent import imports_only_libraries

HOOKED, BEFORE = "hooks_of", "forward_pre_hook"
"""The helpers that keep hooks of both kinds, and that add one before calls."""
_AFTER, _SHORT = "hooks_of(module)[1]", "hooks_after"


def of_hooks_after_calls(texts: Mapping[str, str], user: ast.Module) -> dict[str, str]:
    """The texts of a program's helpers, without a place for hooks before calls if nobody may add one."""
    if BEFORE in texts or not imports_only_libraries(user):
        return dict(texts)
    changed = {name: text.replace(_AFTER, f"{HOOKED}(module)") for name, text in texts.items()}
    return {**changed, HOOKED: renamed(helpers()[_SHORT].text, {_SHORT: HOOKED})}
