"""Facts of calls of einops, which takes JAX arrays as it takes tensors: calls stay, and their values are tensors."""

from __future__ import annotations

import ast
import re

from t2j_lsp.translate.rule.facts import INT, STR, TENSOR, UNKNOWN, Fact, ListOf, Shape, Tensor, Tuple


def einops_value(node: ast.Call, name: str, first: Fact) -> Fact:
    """What the call of a function gives, ``first`` being what is known of its first argument."""
    match name.removeprefix("einops."):
        case "rearrange" | "reduce" | "repeat":
            dtype = first.dtype if isinstance(first, Tensor) and name != "einops.reduce" else None
            return Tensor(_pattern_rank(node), dtype)
        case "einsum":
            return TENSOR
        case "pack":
            return Tuple((TENSOR, ListOf(Shape())))
        case "unpack":
            return ListOf(TENSOR)
        case "parse_shape":
            return ListOf(INT, STR)
        case _:
            return UNKNOWN


def _pattern_rank(node: ast.Call) -> int | None:
    """The number of axes on the right of an einops pattern; None where it has ``...`` or isn't written out."""
    pattern = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "pattern"), None)
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str) or "->" not in pattern.value:
        return None
    right = pattern.value.rpartition("->")[2]
    return None if "..." in right or "…" in right else len(re.sub(r"\([^)]*\)", " g ", right).split())
