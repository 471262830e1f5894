"""Calls of Python's own functions that a conversion wrote into a function whose variable has the name: ``int(x)``.

Names that helpers and templates use are claimed before they are written. What a rule writes as text isn't, and a
function that has a variable ``int``, ``tuple`` or ``float`` would call that.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters

from .assignment import scope_name
from .problem import Problem

NAMES = frozenset(dir(builtins)) - {"id", "input"}
"""Those that a conversion may write."""
_REASON = "{name!r} is a variable of the program here, and no longer Python's own function"
Path = tuple[str, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def hidden_calls(code: ast.Module, source: ast.Module) -> list[Problem]:
    """The calls of a converted text that its source's functions have not, by names that these functions bind."""
    hiding = {path: names for path, node in _functions(source) if (names := _bound(node) & NAMES)}
    if not hiding:
        return []
    before = {path: _calls(node) for path, node in _functions(source) if path in hiding}
    problems = []
    for path, node in _functions(code):
        written = Counter(before.get(path, {}))
        for call in _named_calls(node) if path in hiding else ():
            name = call.func.id  # type: ignore[attr-defined]
            if name in hiding[path]:
                written[name] -= 1
                if written[name] < 0:
                    problems.append(Problem(call.lineno, path, name, True, _REASON.format(name=name)))
    return problems


def _functions(tree: ast.Module) -> Iterator[tuple[Path, Function]]:
    """The functions of a text with the names around them."""
    waiting: list[tuple[ast.AST, Path]] = [(tree, ())]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            path = (*path, scope_name(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield path, node
        waiting += [(child, path) for child in symbols.children(node)]


def _bound(node: Function) -> frozenset[str]:
    return symbols.bound_names(node.body) | {a.arg for a in named_parameters(node)}


def _named_calls(node: Function) -> Iterator[ast.Call]:
    """The calls by a plain name in a function, and in those in it that don't bind the name themselves."""
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(child, frozenset()) for child in node.body]
    while waiting:
        at, own = waiting.pop()
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
            own |= _bound(at)
        if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id not in own:
            yield at
        waiting += [(child, own) for child in symbols.children(at)]


def _calls(node: Function) -> Counter[str]:
    return Counter(call.func.id for call in _named_calls(node))  # type: ignore[attr-defined]
