"""Transforms that see names where they stand for variables: not as attributes, keywords, parameters or in imports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from .source import Source


class Variables(cst.CSTTransformer):
    """Base of transforms that replace variables: `variable` answers with what stands for one, or None."""

    def __init__(self) -> None:
        self._other: set[cst.CSTNode] = set()

    def variable(self, node: cst.Name) -> cst.BaseExpression | None:
        """What is written for a variable; None to leave it."""
        raise NotImplementedError

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._other.add(node.attr)

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self._other.add(node.keyword)

    def visit_Param(self, node: cst.Param) -> None:
        self._other.add(node.name)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._other.add(node.name)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._other.add(node.name)

    def visit_NameItem(self, node: cst.NameItem) -> None:
        self._other.add(node.name)

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self._other:
            return updated_node
        return self.variable(original_node) or updated_node


class Spelling(Variables):
    """Writes imported things by other names: ``spell`` gets a full name and answers with code, or None."""

    def __init__(self, source: Source, spell: Callable[[str], str | None]) -> None:
        super().__init__()
        self.source = source
        self.spell = spell

    def variable(self, node: cst.Name) -> cst.BaseExpression | None:
        return self._spelled(node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return self._spelled(original_node) or updated_node

    def _spelled(self, node: cst.Name | cst.Attribute) -> cst.BaseExpression | None:
        full = self.source.dotted(node)
        code = self.spell(full) if full is not None else None
        return None if code is None else cst.parse_expression(code)


def with_imports(module: cst.Module, lines: Sequence[str]) -> cst.Module:
    """The module with more imports, behind the last import of its head."""
    body = list(module.body)
    place = 0
    for index, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine) and all(_is_head(s) for s in statement.body):
            place = index + 1
        else:
            break
    body[place:place] = [cst.parse_statement(line) for line in lines]
    return module.with_changes(body=body)


def _is_head(statement: cst.BaseSmallStatement) -> bool:
    is_docstring = isinstance(statement, cst.Expr) and isinstance(
        statement.value, cst.SimpleString | cst.ConcatenatedString
    )
    return is_docstring or isinstance(statement, cst.Import | cst.ImportFrom)
