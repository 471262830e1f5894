"""Why a class of optimizers has no form as a function of one parameter."""

from __future__ import annotations

import ast


class Unfit(Exception):
    """What of a class can't be said of each parameter by itself, and where it stands."""

    def __init__(self, reason: str, node: ast.AST) -> None:
        super().__init__(reason)
        self.reason, self.node = reason, node


def need(holds: object, reason: str, node: ast.AST) -> None:
    """Raises Unfit where something doesn't hold."""
    if not holds:
        raise Unfit(reason, node)
