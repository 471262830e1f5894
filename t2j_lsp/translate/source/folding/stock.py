"""Arguments of Flax's own layers that say what is so without them."""

from __future__ import annotations

from functools import cache

import libcst as cst

from .literals import value_of
from .parts import of_parts, words
from .transformer import Transformer, code, transformed

DEFAULTS: dict[str, dict[str, bool | int | float]] = {
    "nnx.Linear": {"use_bias": True},
    "nnx.Conv": {"kernel_dilation": 1, "feature_group_count": 1, "use_bias": True},
    "nnx.ConvTranspose": {"use_bias": True},
    "nnx.BatchNorm": {"use_running_average": False, "epsilon": 1e-5, "use_bias": True, "use_scale": True},
    "nnx.GroupNorm": {"use_bias": True, "use_scale": True},
    "nnx.LayerNorm": {"use_bias": True, "use_scale": True},
    "jax.lax.scan": {"reverse": False},
    "optax.safe_norm": {"keepdims": False},
    "optax.softmax_cross_entropy_with_integer_labels": {"axis": -1},
}
"""What Flax's layers and JAX's functions take where nothing is passed; a test compares it with the installed ones."""


@cache
def without_stock_defaults(text: str, base: str | None) -> str:
    """The text of a definition, whose stock base is ``base``, without keywords that Flax would take anyway."""
    return of_parts(text, lambda part: _without_defaults(part, base) if words(part) & _PASSED else part)


_PASSED = frozenset(name for defaults in DEFAULTS.values() for name in defaults)


@cache
def _without_defaults(text: str, base: str | None) -> str:
    return transformed(text, lambda: _Defaults(base))


class _Defaults(Transformer):
    def __init__(self, base: str | None) -> None:
        super().__init__()
        self.base = base

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        called = code(original_node.func)
        known = DEFAULTS.get(self.base if called == "super().__init__" and self.base else called, {})
        kept = [
            a
            for a in updated_node.args
            if a.keyword is None or a.keyword.value not in known or not _is(value_of(a.value), known[a.keyword.value])
        ]
        if len(kept) == len(updated_node.args):
            return updated_node
        if kept:
            last = updated_node.args[-1]
            kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        return updated_node.with_changes(args=kept)


def _is(value: object, default: float) -> bool:
    """Whether a value says what the default says: one number for each axis, or for all of them."""
    return value == default or isinstance(value, tuple) and set(value) == {default}
