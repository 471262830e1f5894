"""libcst transformers that go through code alone: half of a concrete tree is whitespace, and visited as slowly.

Most texts stay as they are, and a transformer makes every node anew all the same. So it is asked first whether its
methods change anything, which takes a fraction of that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import Any, TypeVar

import libcst as cst
from libcst._nodes.internal import CodegenState

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


_PLAIN = frozenset(("comma", "dot", "equal", "footer", "header", "lpar", "operator", "rpar", "semicolon"))
"""Fields that hold no code, as do those for white space and lines of comments."""
KEPT = 32
"""Trees that are kept: steps follow one another on the same texts."""


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


def transformed(text: str, make: Callable[[], Transformer]) -> str:
    """A text as a transformer leaves it; ``make`` makes one that has seen nothing yet."""
    module = _parsed(text)
    return text if _keeps(make(), module) else code(module.visit(make()))


@lru_cache(KEPT)
def _parsed(text: str) -> cst.Module:
    return cst.parse_module(text)


def _keeps(transformer: Transformer, node: cst.CSTNode) -> bool:
    """Whether no method of a transformer changes a node or anything inside it.

    What is visited first is as it was when the next is, so every method is handed the node as it stands.
    """
    visit, leave, inside = _methods(type(transformer), type(node))
    if visit is not None and getattr(transformer, visit)(node) is False:
        inside = False
    if inside:
        for name in _parts(type(node)):
            value = getattr(node, name)
            for one in value if isinstance(value, list | tuple) else (value,):
                if isinstance(one, cst.CSTNode) and not _keeps(transformer, one):
                    return False
    if leave is None:
        return True
    left = getattr(transformer, leave)(node, node)
    return left is node or isinstance(left, cst.CSTNode) and left.deep_equals(node)


@cache
def _parts(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold code."""
    names = [one.name for one in dataclasses.fields(kind)]
    return tuple(
        n for n in names if n not in _PLAIN and "whitespace" not in n and not n.startswith(("leading_", "lines_"))
    )


class _Text(CodegenState):
    """What libcst writes, without contexts for the places that nobody asks for."""

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Any:
        return _NO_PLACE


_NO_PLACE = nullcontext()


def code(node: cst.CSTNode) -> str:
    """The text of a module, or of a part of it that is indented as helpers are."""
    module = node if isinstance(node, cst.Module) else _HELPER
    state = _Text(module.default_indent, module.default_newline)
    node._codegen(state)
    return "".join(state.tokens)


_HELPER = cst.Module([])
