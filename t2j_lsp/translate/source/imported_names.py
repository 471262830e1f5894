"""An import with more or fewer names: on one line where it fits, else in the layout that it has, comments kept."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, cast

import libcst as cst

from .syntax import plain_statement
from .text import Source

LINE_LENGTH = 120

Import = cst.Import | cst.ImportFrom


def import_node(source: Source, node: ast.Import | ast.ImportFrom) -> Any:
    """The concrete node of an import."""
    if node.col_offset == 0 and "\r" not in source.text and plain_statement(source, node) is not None:
        line = cst.parse_module(source.segment(node)).body[0]
        return cast(cst.SimpleStatementLine, line).body[0]
    return source.parsed_statement(node).node


def import_code(source: Source, node: ast.Import | ast.ImportFrom, new: Import) -> str:
    """The code of an import that takes the place of another one; what parts it from the next statement stays there."""
    alone = new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    code = cst.Module([], default_newline=source.newline).code_for_node(alone)
    return code.replace(source.newline, source.newline + source.indent(node.lineno))


def with_names(node: cst.ImportFrom, added: Iterable[str]) -> cst.ImportFrom | None:
    """``from x import a`` with more names, each in its place; None where they don't fit into its layout."""
    if isinstance(node.names, cst.ImportStar):
        return None
    have = {_text(alias) for alias in node.names}
    new = sorted(set(added) - have, key=_order)
    if not new:
        return node
    if _on_one_line(node):
        aliases = sorted([*node.names, *map(_alias, new)], key=lambda alias: _order(_text(alias)))
        line = cast(cst.ImportFrom, _one_line(node, aliases))
        return line if len(_code(line)) <= LINE_LENGTH else None
    node = _with_last_comma(node)
    layout = _layout(node)
    if layout is None:
        return None
    aliases = list(cast(Sequence[cst.ImportAlias], node.names))
    for name in new:
        _insert(aliases, name, layout)
    return node.with_changes(names=aliases)


def with_only(node: Import, kept: Sequence[int]) -> Import:
    """An import with those of its names that have the indices ``kept``, at least one."""
    names = cast(Sequence[cst.ImportAlias], node.names)
    aliases = [names[index] for index in kept]
    line = _one_line(node, aliases)
    commented = any("#" in _code(alias) for alias in aliases)
    if _on_one_line(node) or len(_code(line)) <= LINE_LENGTH and not commented:
        return line
    if isinstance(node, cst.ImportFrom):
        node = _with_last_comma(node)
    end = cast(Sequence[cst.ImportAlias], node.names)[-1].comma
    last = aliases[-1].with_changes(comma=_ended(aliases[-1].comma, end))
    return node.with_changes(names=[*aliases[:-1], last])


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order that isort and ruff keep."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _text(alias: cst.ImportAlias) -> str:
    return alias.evaluated_name + (f" as {alias.evaluated_alias}" if alias.asname is not None else "")


def _alias(name: str) -> cst.ImportAlias:
    return cst.ImportAlias(cst.Name(name))


def _on_one_line(node: Import) -> bool:
    return "\n" not in (code := _code(node)) and "\r" not in code


def _one_line(node: Import, aliases: Sequence[cst.ImportAlias]) -> Import:
    """The import without brackets."""
    plain = [
        cst.ImportAlias(one.name, cst.AsName(one.asname.name) if one.asname is not None else None) for one in aliases
    ]
    brackets = {"lpar": None, "rpar": None} if isinstance(node, cst.ImportFrom) else {}
    return node.with_changes(names=plain, **brackets)


def _with_last_comma(node: cst.ImportFrom) -> cst.ImportFrom:
    """The import with a comma behind its last name, where the bracket closes on another line."""
    *others, last = cast(Sequence[cst.ImportAlias], node.names)
    if node.rpar is None or isinstance(last.comma, cst.Comma):
        return node
    between = node.rpar.whitespace_before
    if not isinstance(between, cst.ParenthesizedWhitespace):
        return node
    last = last.with_changes(comma=cst.Comma(whitespace_after=between))
    return node.with_changes(names=[*others, last], rpar=cst.RightParen())


def _layout(node: cst.ImportFrom) -> cst.ParenthesizedWhitespace | None:
    """What stands between two names that have a line each; None where they don't."""
    names = cast(Sequence[cst.ImportAlias], node.names)
    between = [one.comma.whitespace_after for one in names[:-1] if isinstance(one.comma, cst.Comma)]
    if not between and node.lpar is not None:
        between = [node.lpar.whitespace_after]
    if isinstance(names[-1].comma, cst.Comma):
        between.append(names[-1].comma.whitespace_after)
    lines = [one for one in between if isinstance(one, cst.ParenthesizedWhitespace)]
    if len(lines) < len(between) or not lines:
        return None
    return lines[0].with_changes(first_line=_bare(lines[0].first_line), empty_lines=())


def _bare(line: cst.TrailingWhitespace) -> cst.TrailingWhitespace:
    return line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)


def _insert(aliases: list[cst.ImportAlias], name: str, layout: cst.ParenthesizedWhitespace) -> None:
    """Put a name among others in front of the first that sorts behind it."""
    at = next((i for i, one in enumerate(aliases) if _order(_text(one)) > _order(name)), len(aliases))
    comma: cst.Comma | cst.MaybeSentinel = cst.Comma(whitespace_after=layout)
    if at == len(aliases):
        last, comma = aliases[-1], _ended(cst.Comma(whitespace_after=layout), aliases[-1].comma)
        aliases[-1] = last.with_changes(comma=_ended(last.comma, cst.Comma(whitespace_after=layout)))
    aliases.insert(at, _alias(name).with_changes(comma=comma))


def _ended(own: cst.Comma | cst.MaybeSentinel, end: cst.Comma | cst.MaybeSentinel) -> cst.Comma | cst.MaybeSentinel:
    """The comma ``end`` of another name with the comment of a name's ``own``."""
    if not isinstance(end, cst.Comma) or not isinstance(end.whitespace_after, cst.ParenthesizedWhitespace):
        return end
    before = own.whitespace_after if isinstance(own, cst.Comma) else None
    if isinstance(before, cst.ParenthesizedWhitespace):
        line = before.first_line
    else:
        line = _bare(end.whitespace_after.first_line)
    return end.with_changes(whitespace_after=end.whitespace_after.with_changes(first_line=line))
