"""Attributes of a helper's class that nothing reads: what sets them goes, and what adds to them."""

from __future__ import annotations

import ast
import itertools

from t2j_lsp.translate.source.assignments import assigned

from .definitions import definition, nodes
from .variables import is_pure, without_assignment


def without_attribute(text: str, read: set[str]) -> str:
    """A class without one of the attributes that nothing names.

    One that is counted up stays where the class reads itself as a whole, `vars(self)`: a checkpoint has its value.
    """
    node = definition(text)
    assert isinstance(node, ast.ClassDef)
    counted = [n for n in nodes(node) if isinstance(n, ast.AugAssign)]
    read = read | {n.target.attr for n in counted if isinstance(n.target, ast.Attribute) and "vars(self)" in text}
    for statement in nodes(node):
        if isinstance(statement, ast.Assign) and (shorter := _without_target(text, statement, read)) is not None:
            return shorter
        added = [(statement.target, statement.value)] if isinstance(statement, ast.AugAssign) else []
        for index, (target, value) in enumerate([*added, *assigned(statement)]):
            if isinstance(target, ast.Name) and statement in node.body:
                name = target.id
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                name = target.attr
            else:
                continue
            if name not in read and is_pure(value):
                assert isinstance(statement, ast.stmt)
                return without_assignment(_without_remark(text, node, statement), statement, index)
    return text


def _without_target(text: str, statement: ast.Assign, read: set[str]) -> str | None:
    """A class in which ``self.rate = rate = value`` no longer sets an attribute that nothing names."""
    for target, following in itertools.pairwise(statement.targets):
        match target:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name not in read:
                assert target.end_lineno == following.lineno, "targets of one statement stand on one line"
                lines = text.splitlines(keepends=True)
                line = lines[target.lineno - 1]
                lines[target.lineno - 1] = line[: target.col_offset] + line[following.col_offset :]
                return "".join(lines)
    return None


def _without_remark(text: str, node: ast.ClassDef, statement: ast.stmt) -> str:
    """A class without the string behind an attribute, which says what it is."""
    match node.body[node.body.index(statement) + 1 :] if statement in node.body else []:
        case [ast.Expr(value=ast.Constant(value=str())) as remark, *_] if len(node.body) > 2:
            lines = text.splitlines(keepends=True)
            return "".join([*lines[: remark.lineno - 1], *lines[remark.end_lineno :]])
    return text
