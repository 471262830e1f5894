"""The marks of a file: which of its layers and expressions are channels-last."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp.translate.rule.definitions import FunctionInfo

from .chains import Interface


@dataclass
class Layout:
    """The marks. ``rank`` gives the number of spatial axes of a marked expression."""

    natural: dict[ast.expr, int] = field(default_factory=dict)
    wanted: dict[ast.expr, int] = field(default_factory=dict)
    channels_last: set[ast.Call] = field(default_factory=set)
    """Constructor calls that take their channels-last form."""
    channels_first: set[ast.Call] = field(default_factory=set)
    """Those that take Flax's arguments and PyTorch's axes, where they don't take the channels-last form."""
    borders: dict[ast.Call, int] = field(default_factory=dict)
    """Those of layers at which channels-last values end, begin or go on, and how many spatial axes these have."""
    functions: set[ast.Call] = field(default_factory=set)
    """Calls of functions (``F.max_pool2d``) that take theirs."""
    texts: dict[ast.expr, str | ast.expr] = field(default_factory=dict)
    """What axes and sizes become: a text, or what another expression is."""
    interfaces: dict[FunctionInfo, Interface] = field(default_factory=dict)
    """Functions that take or give channels-last values."""

    def shown(self, node: ast.expr) -> ast.expr:
        """An argument as rules see it: with the axes that stand in it afterwards."""
        if node in self.texts:
            text = self.texts[node]
            return ast.parse(text, mode="eval").body if isinstance(text, str) else text
        if isinstance(node, ast.List | ast.Tuple) and not self.texts.keys().isdisjoint(node.elts):
            changed = type(node)(elts=[self.shown(one) for one in node.elts], ctx=node.ctx)
            return ast.copy_location(changed, node)
        return node

    def wrap(self, node: ast.expr, text: str, jnp: str) -> str | None:
        """The text with the move it needs here; None if it needs none."""
        natural, wanted = self.natural.get(node), self.wanted.get(node)
        if natural is not None and wanted is None:
            return f"{jnp}.moveaxis({text}, -1, {-natural - 1})"
        if wanted is not None and natural is None:
            return f"{jnp}.moveaxis({text}, {-wanted - 1}, -1)"
        return None
