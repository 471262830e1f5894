"""Hooks behind calls alone: a program that has none before them needs no place for those."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from .absent import imports_only_libraries
from .transformer import Transformer, code, transformed

HOOKED, BEFORE = "hooks_of", "forward_pre_hook"
"""The helpers that keep hooks of both kinds, and that add one before calls."""
_AFTER = "hooks_of(module)[1]"


def of_hooks_after_calls(texts: Mapping[str, str], user: ast.Module) -> dict[str, str]:
    """The texts of a program's helpers, without a place for hooks before calls if nobody may add one."""
    if BEFORE in texts or not imports_only_libraries(user):
        return dict(texts)
    changed = {name: text.replace(_AFTER, f"{HOOKED}(module)") for name, text in texts.items()}
    return {**changed, HOOKED: after_calls(texts[HOOKED])}


def after_calls(text: str) -> str:
    """The text of the helper that keeps hooks, without those before calls: it gives the others alone."""
    return transformed(text.replace("hooks before and after each call", "hooks after each call"), _AfterCalls)


class _AfterCalls(Transformer):
    """Takes the loop over ``before`` out, and that name of pairs with ``after``, which stays alone."""

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For | cst.RemovalSentinel:
        return cst.RemoveFromParent() if "before" in code(original_node.iter) else updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        match original_node.targets[0].target, updated_node.value:
            case cst.Tuple() as names, cst.Tuple(elements=[_, second]) if _is_pair(names):
                target = updated_node.targets[0].with_changes(target=cst.Name("after"))
                return updated_node.with_changes(targets=[target], value=second.value)
        return updated_node

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.BaseExpression:
        return cst.Name("after") if _is_pair(original_node) else updated_node


def _is_pair(node: cst.Tuple) -> bool:
    return [code(one.value) for one in node.elements] == ["before", "after"]
