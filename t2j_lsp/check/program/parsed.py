"""The statements of a function or a script that read its command line: a parser, its arguments, what it gives."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from .scopes import bound, changed, uses

_PARTS = frozenset({"add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"})


def parts_of(statements: Sequence[ast.stmt]) -> dict[str, str]:
    """What parts of parsers are called, and whose they are: ``group = parser.add_argument_group()``."""
    parts: dict[str, str] = {}
    for statement in statements:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Name(owner), method))) if method in _PARTS:
                parts[name] = owner
    return parts


def with_parts(names: Collection[str], parts: Mapping[str, str]) -> set[str]:
    """The names, and those of parts of what they name."""
    expanded = set(names)
    while more := {name for name, owner in parts.items() if owner in expanded} - expanded:
        expanded |= more
    return expanded


def reads_command_line(node: ast.AST) -> bool:
    """Whether a parser is asked for what the command line holds, in an expression or in what is called there."""
    attributes = (n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute))
    return any(name.startswith("parse_") for name in attributes)


def statements_for(name: str, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that give a variable its value and change it, with what they need of the others."""
    parts, needed = parts_of(statements), {name}
    wanted_statements: list[ast.stmt] = []
    for statement in reversed(statements):
        if {*bound(statement), *changed(statement)} & with_parts(needed, parts):
            wanted_statements.insert(0, statement)
            needed |= {use.name for use in uses(statement, False)}
    return wanted_statements
