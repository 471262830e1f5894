"""Loops that run once, and names and attributes that were put together from literals, written plainly."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import libcst as cst

from .definitions import definition, nodes
from .literals import UNKNOWN, parsed_literal, value_of
from .parts import of_parts
from .transformer import Transformer, code, transformed


@cache
def unrolled(text: str) -> str:
    """The text of a definition without loops over one known element, and with attributes by their names."""
    return of_parts(text, _unrolled)


@cache
def _unrolled(text: str) -> str:
    if not any(_may_change(node) for node in nodes(definition(text))):
        return text
    return transformed(text, _Unroller)


def _may_change(node: ast.AST) -> bool:
    """Whether a node is a loop or a name that `_Unroller` looks at: found without a concrete tree."""
    match node:
        case ast.For(iter=ast.Tuple(elts=[_]) | ast.Call(func=ast.Name("range"), args=[ast.Constant(1)])):
            return True
        case ast.Call(func=ast.Name("getattr" | "setattr"), args=[_, ast.Constant(), *_]):
            return True
    return False


class _Unroller(Transformer):
    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(body=[one for s in updated_node.body for one in _plain(s)])

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node:
            case cst.Call(
                func=cst.Name("getattr"), args=[cst.Arg(value=owner), cst.Arg(value=cst.SimpleString() as s)]
            ):
                return _attribute(owner, s) or updated_node
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        match updated_node.body:
            case [cst.Expr(value=cst.Call(func=cst.Name("setattr"), args=[owner, name, value]))]:
                if isinstance(name.value, cst.SimpleString) and (place := _attribute(owner.value, name.value)):
                    return updated_node.with_changes(body=[cst.Assign([cst.AssignTarget(place)], value.value)])
        return updated_node


def _attribute(owner: cst.BaseExpression, name: cst.SimpleString) -> cst.Attribute | None:
    text = str(value_of(name))
    plain = text.isidentifier() and not keyword.iskeyword(text) and isinstance(owner, cst.Name)
    return cst.Attribute(owner, cst.Name(text)) if plain else None


def _plain(statement: cst.BaseStatement) -> Iterable[cst.BaseStatement]:
    """A loop over one known element as an assignment and what it does with it; other statements as they are."""
    if not isinstance(statement, cst.For) or statement.orelse is not None or _leaves(statement.body.body):
        return [statement]
    element = _only_element(statement.iter)
    if element is None or not isinstance(statement.body, cst.IndentedBlock):
        return [statement]
    first = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(statement.target)], element)], leading_lines=statement.leading_lines
    )
    return [first, *statement.body.body]


def _only_element(values: cst.BaseExpression) -> cst.BaseExpression | None:
    match values:
        case cst.Tuple(elements=[cst.Element(value=only)]) if value_of(only) is not UNKNOWN:
            return only
        case cst.Call(func=cst.Name("range"), args=[cst.Arg(value=count, keyword=None, star="")]):
            return parsed_literal(0) if value_of(count) == 1 else None
    return None


def _leaves(body: Sequence[cst.CSTNode]) -> bool:
    """Whether a loop's body has a ``break`` or ``continue`` of it."""
    text = "".join(code(one) for one in body)
    indented = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    return any(isinstance(n, ast.Break | ast.Continue) for n in _own_nodes(ast.parse(f"while True:\n{indented}")))


def _own_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of the loop that a text is, without those of loops in it."""
    (loop,) = tree.body
    todo: list[ast.AST] = list(ast.iter_child_nodes(loop))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef):
            todo += ast.iter_child_nodes(node)
