"""What a handler of one expression or statement may ask of the passes that write them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Protocol

from t2j_lsp.translate.rule.pieces import Piece


class ExpressionRenderer(Protocol):
    """What parts that write code ask for the expressions in it."""

    def render(self, node: ast.expr) -> Piece:
        """The JAX code of an expression."""

    def argument(self, node: ast.expr, needed: bool = False) -> Piece:
        """An argument of a call: a variable is read with ``[...]``; ``needed`` where it can't be None."""

    def usual(self, node: ast.expr) -> Piece:
        """What an expression becomes but for its plan."""

    def put(self, node: ast.expr, piece: Piece) -> None:
        """Say what an expression becomes, before it is rendered."""

    def forget(self, nodes: Iterable[ast.AST]) -> None:
        """Have expressions rendered anew, because names in them mean something else where they stand next."""

    def need(self, name: str) -> str:
        """A helper or imported name for the output, renamed if the user's code has taken it."""


class StatementRewriter(Protocol):
    """What parts that rewrite statements ask for the statements inside."""

    @property
    def renderer(self) -> ExpressionRenderer: ...

    def block(self, body: Iterable[ast.stmt]) -> None:
        """Rewrite statements in order."""

    def unwrap(self, node: ast.stmt, body: list[ast.stmt]) -> None:
        """Take the header off a block, so that its statements stand in its place."""

    def visit(self, node: ast.stmt, planned: bool = True) -> None:
        """Rewrite a statement, as planned if it is, and put in front of it what its expressions ask for."""

    def dispatch(self, node: ast.stmt) -> None:
        """Rewrite a statement by its kind."""


ExpressionHandler = Callable[[ExpressionRenderer], Piece | None]
"""What one expression becomes; None for its usual rewriting."""
StatementHandler = Callable[[StatementRewriter], None]
"""What is done with one statement instead of its usual rewriting."""


def written_as(text: str | ast.expr) -> ExpressionHandler:
    """An expression that becomes a text, or what another one would be."""
    if isinstance(text, str):
        return lambda renderer: Piece(text)
    return lambda renderer: renderer.usual(text)
