"""Where a reader starts in a conversion: at the user's first definition, past imports and copied helpers."""

from __future__ import annotations

import ast
import re

from .intact import BOM
from .model import Landmarks

_CONFLICT = re.compile(r"^<{7} ", re.M)


def landmarks(source: str, code: str) -> Landmarks:
    """The landmarks of ``code``, the conversion of ``source``. The first conflict of a merge is where to start."""
    conflict = _CONFLICT.search(code)
    if conflict is not None:
        return Landmarks(code.count("\n", 0, conflict.start()))
    try:
        before, after = ast.parse(source.removeprefix(BOM)), ast.parse(code.removeprefix(BOM))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Landmarks()
    own = {name for name, _, _ in _definitions(before)}
    definitions = list(_definitions(after))
    places = tuple((name, first) for name, first, _ in definitions if name in own)
    helpers: list[tuple[int, int]] = []
    previous = None
    for name, first, last in definitions:
        if name in own:
            previous = None
            continue
        if previous is not None:
            helpers[-1] = (helpers[-1][0], last)
        else:
            helpers.append((first, last))
        previous = name
    return Landmarks(_first(after, own, places), places, tuple(helpers))


def _definitions(tree: ast.Module) -> list[tuple[str, int, int]]:
    """The classes and functions at the top level: name, first line with decorators, last line; from 0."""
    definitions = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            definitions.append((node.name, first - 1, (node.end_lineno or first) - 1))
    return definitions


def _first(tree: ast.Module, own: set[str], places: tuple[tuple[str, int], ...]) -> int:
    """The line of the user's first definition; of the first statement behind imports where there is none."""
    if places:
        return places[0][1]
    for index, node in enumerate(tree.body):
        docstring = not index and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        copied = isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in own
        if not docstring and not copied and not isinstance(node, ast.Import | ast.ImportFrom):
            return node.lineno - 1
    return 0
