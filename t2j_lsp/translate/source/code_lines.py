"""What counts as a line of code."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def code_lines(text: str) -> set[int]:
    """The lines on which code stands: comments, empty lines and docstrings apart."""
    tree = ast.parse(text.lstrip("\ufeff"))
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return {n for n, line in lines if line.strip() and not line.lstrip().startswith("#")} - said


def lines_of(texts: Iterable[str]) -> int:
    """How many lines of code several texts have."""
    return sum(len(code_lines(text)) for text in texts)
