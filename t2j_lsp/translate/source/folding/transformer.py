"""libcst transformers that go through code alone: half of a concrete tree is whitespace, and visited as slowly."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import libcst as cst

Node = TypeVar("Node", bound=cst.CSTNode)

_MARKS = (
    *(cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline, cst.Comment),
    *(cst.Comma, cst.Dot, cst.Colon, cst.Semicolon, cst.AssignEqual, cst.LeftParen, cst.RightParen),
    *(cst.LeftSquareBracket, cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace),
    *(cst.BaseBinaryOp, cst.BaseBooleanOp, cst.BaseUnaryOp, cst.BaseCompOp, cst.BaseAugOp),
)
"""What stands between names: no transformer of helpers asks for it."""
_ATOMS = (cst.Name, cst.Integer, cst.Float, cst.Imaginary, cst.SimpleString)
"""What has nothing inside but the brackets around it."""


@cache
def _methods(transformer: type, node: type[cst.CSTNode]) -> tuple[str | None, str | None, bool]:
    """The methods by which a transformer visits and leaves a kind of node, and whether it has to look inside."""
    if issubclass(node, _MARKS):
        return None, None, False
    visit, leave = (
        name if getattr(transformer, name, None) is not getattr(cst.CSTTransformer, name, None) else None
        for name in (f"visit_{node.__name__}", f"leave_{node.__name__}")
    )
    return visit, leave, not issubclass(node, _ATOMS)


class Transformer(cst.CSTTransformer):
    """A transformer with ``visit_`` and ``leave_`` methods for nodes of code, and none for their attributes."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        visit, _, inside = _methods(type(self), type(node))
        return (visit is None or getattr(self, visit)(node) is not False) and inside

    def on_leave(
        self, original_node: Node, updated_node: Node
    ) -> Node | cst.RemovalSentinel | cst.FlattenSentinel[Node]:
        _, leave, _ = _methods(type(self), type(original_node))
        return updated_node if leave is None else getattr(self, leave)(original_node, updated_node)

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        pass

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        pass
