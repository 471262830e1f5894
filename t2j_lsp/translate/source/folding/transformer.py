"""libcst transformers that go through code alone: half of a concrete tree is whitespace, and visited as slowly.

Most texts stay as they are, and most of those that change do so in one place. libcst makes every node anew all the
same; here a node with nothing changed in it stays the node it was, and what a step made is not parsed for the next.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
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
KEPT = 256
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
    left = _left(make(), module)
    if left is module:
        return text
    made = code(left)
    _keep(made, left)
    return made


_trees: dict[str, cst.Module] = {}
"""The trees of texts that were looked at or made last: what a step makes, the next one looks at."""


def _parsed(text: str) -> cst.Module:
    return _keep(text, _trees.pop(text) if text in _trees else cst.parse_module(text))


def _keep(text: str, tree: cst.Module) -> cst.Module:
    _trees[text] = tree
    if len(_trees) > KEPT:
        del _trees[next(iter(_trees))]
    return tree


def _left(transformer: Transformer, node: cst.CSTNode) -> Any:
    """What a transformer makes of a node and all inside it: the node itself where that is the same code.

    As `libcst.CSTNode.visit`, which makes every node anew.
    """
    visit, leave, inside = _methods(type(transformer), type(node))
    if visit is not None and getattr(transformer, visit)(node) is False:
        inside = False
    updated = node
    if inside:
        changes: dict[str, Any] = {}
        for name in _parts(type(node)):
            value = getattr(node, name)
            if isinstance(value, list | tuple):
                new: Any = _left_of_each(transformer, value) if value else value
            elif isinstance(value, cst.CSTNode):
                new = _left(transformer, value)
            else:
                continue
            if new is not value:
                changes[name] = new
        if changes:
            updated = node.with_changes(**changes)
    if leave is None:
        return updated
    left = getattr(transformer, leave)(node, updated)
    return node if updated is node and _same(left, node) else left


def _left_of_each(transformer: Transformer, nodes: Sequence[cst.CSTNode]) -> Sequence[cst.CSTNode]:
    """The same for the nodes of a list, of which some may go."""
    left = [_left(transformer, one) for one in nodes]
    if all(map(operator.is_, left, nodes)):
        return nodes
    return [one for one in left if one is not cst.RemovalSentinel.REMOVE]


def _same(left: Any, node: cst.CSTNode) -> bool:
    """Whether what was left of a node is the same code; mostly it holds the very same parts."""
    if left is node:
        return True
    if type(left) is not type(node):
        return False
    for name in _fields(type(node)):
        one, other = getattr(left, name), getattr(node, name)
        if one is not other and not (_are_lists(one, other) and all(map(operator.is_, one, other))):
            return node.deep_equals(left)
    return True


def _are_lists(one: Any, other: Any) -> bool:
    return isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other)


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(kind))


@cache
def _parts(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold code."""
    return tuple(
        n
        for n in _fields(kind)
        if n not in _PLAIN and "whitespace" not in n and not n.startswith(("leading_", "lines_"))
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
