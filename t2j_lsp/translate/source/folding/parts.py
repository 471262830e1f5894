"""A class in parts: its head, and each of its statements. A step that changes one method need not read the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from t2j_lsp.translate.source.positions import first_line

from .definitions import definition

HEAD = "class _:\n"
"""What stands above a part of a class, so that it is read alone."""
BODY = "    pass\n"
"""What stands below the head of one."""


@cache
def parts(text: str) -> tuple[str, ...]:
    """The lines of a class: its head, and its statements, each with what stands above it."""
    node = definition(text)
    if not isinstance(node, ast.ClassDef) or not text.endswith("\n"):
        return ()
    lines = text.splitlines(keepends=True)
    firsts, ends = [first_line(s) for s in node.body], [s.end_lineno or s.lineno for s in node.body]
    begin = firsts[0] - 1
    while begin and (not lines[begin - 1].strip() or lines[begin - 1].lstrip().startswith("#")):
        begin -= 1
    if not begin or any(end >= first for end, first in zip(ends, firsts[1:], strict=False)):
        return ()
    return tuple("".join(lines[a:b]) for a, b in pairwise([0, begin, *ends[:-1], len(lines)]))


def of_parts(text: str, change: Callable[[str], str]) -> str:
    """A definition as ``change`` leaves it, which is asked for each part of a class by itself."""
    if not (whole := parts(text)):
        return change(text)
    head, *body = whole
    changed = [change(head + BODY).removesuffix(BODY), *(change(HEAD + part).removeprefix(HEAD) for part in body)]
    return text if changed == [*whole] else "".join(changed)


def is_function(part: str, name: str) -> bool:
    """Whether a part of a class, or a definition, is the function of a name."""
    statement = definition(part)
    if isinstance(statement, ast.ClassDef):
        statement = statement.body[0]
    return isinstance(statement, ast.FunctionDef) and statement.name == name


def is_remark(part: str) -> bool:
    """Whether a part of a class is its docstring, or that of an attribute."""
    match definition(part):
        case ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())), *_]):
            return True
    return False


@cache
def words(text: str) -> frozenset[str]:
    """The words in a text, which are all the names that it may have."""
    return frozenset(re.findall(r"\w+", text))
