"""Variables of statements under other names, or as what stands for them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TypeVar

Code = TypeVar("Code", bound=ast.AST)


def renamed(node: Code, names: Mapping[str, str | ast.expr]) -> Code:
    """A copy of a statement or an expression with other variables in the place of some."""
    return _Renamed(names).visit(copy.deepcopy(node))  # type: ignore[no-any-return]


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str | ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id)
        if new is None:
            return node
        made = ast.Name(new, node.ctx) if isinstance(new, str) else copy.deepcopy(new)
        return ast.copy_location(made, node)
