"""Numbers that a program's own parser reads from the command line: ``args.clip_value``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.source.text import Source


def is_parsed_number(source: Source, node: ast.expr) -> bool:
    """Whether it is read from what a parser of the file gives, whose arguments of that name are all numbers."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    given = [n for n in source.nodes if isinstance(n, ast.Name) and n.id == node.value.id and _stores(n)]
    if not given or not all(_is_parsed(source.parents.get(one)) for one in given):
        return False
    if any(isinstance(n, ast.Attribute) and n.attr == node.attr and _stores(n) for n in source.nodes):
        return False
    arguments = [*_arguments(source, node.attr)]
    return bool(arguments) and all(map(_is_number, arguments))


def _stores(node: ast.Name | ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _is_parsed(statement: ast.AST | None) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Attribute(attr="parse_args"))):
            return True
    return False


def _arguments(source: Source, name: str) -> Iterator[ast.Call]:
    """The calls that add an argument of a name."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=flags, keywords=keywords):
                named = [k.value for k in keywords if k.arg == "dest"] or flags
                texts = [n.value for n in named if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                if name in [text.lstrip("-").replace("-", "_") for text in texts] or len(texts) != len(named):
                    yield node


def _is_number(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    match given.get("type"), given.get("default"):
        case ast.Name(id="float" | "int"), ast.Constant(value=int() | float()):
            return not given.keys() & {"nargs", "action", None}
    return False
