"""Conditions that ask for PyTorch's version, where every one that t2j knows gives the same answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.rule.library import Trait, names_with

OLDEST = (2, 6)
"""The oldest version of PyTorch that t2j knows."""


def of_version(node: ast.expr, fact: Callable[[ast.AST], Fact]) -> bool | None:
    """The answer to ``parse(torch.__version__) < parse("2.0")``; None for others, and where it depends."""
    if not isinstance(node, ast.Compare):
        return None
    match _inside(node.left), node.ops, _inside(node.comparators[0]):
        case asked, [operator], ast.Constant(value=str() as text) if _is_version(fact(asked)):
            match = re.match(r"(\d+)\.(\d+)", text)
            if match is None or (int(match[1]), int(match[2])) > OLDEST:
                return None
            if isinstance(operator, ast.Lt | ast.GtE):
                return isinstance(operator, ast.GtE)
    return None


def _is_version(fact: Fact) -> bool:
    return isinstance(fact, Qual) and fact.name in names_with(Trait.VERSION)


def _inside(node: ast.expr) -> ast.expr:
    """What ``version.parse(...)`` and the like are given."""
    return node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else node
