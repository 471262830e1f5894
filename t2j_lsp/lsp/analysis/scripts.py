"""Which files are programs that can be run, and which of their functions train."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TRAINS = frozenset({"backward", "step"})
MAIN = "main"


def trains(node: ast.AST) -> bool:
    """Whether a statement or definition makes training steps: it calls ``backward()`` and ``step()``."""
    called = {n.func.attr for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    return called >= _TRAINS


def training_functions(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """The functions at the top level that train."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and trains(node):
            yield node.name


def is_main_guard(node: ast.stmt) -> bool:
    """Whether a statement is ``if __name__ == "__main__":``."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = node.test.left, *node.test.comparators
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def starts(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """What statements at the top level do of a program: an empty text for training, else the functions they call."""
    for node in nodes:
        if isinstance(node, _DEFINITIONS):
            continue
        if is_main_guard(node) or trains(node):
            yield ""
        yield from (n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))


def runs(training: Iterable[str], started: Iterable[str]) -> tuple[bool, tuple[str, ...]]:
    """Whether a file with these training functions is a program, and which of its functions are what is run then."""
    functions, called = set(training), set(started)
    if "" not in called and not called & {*functions, MAIN}:
        return False, ()
    return True, tuple(sorted({*functions, MAIN}))
