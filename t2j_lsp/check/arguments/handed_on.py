"""Arguments that a function only hands on: they are no tensors where the functions of the file that get them take none.

``features(seq_len)``, where ``features`` takes the logarithm of it by ``math``, says that ``seq_len`` is a number.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from t2j_lsp.symbols import named_parameters, positional_parameters

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_DEEPEST = 3
_MAKERS = frozenset(
    {"arange", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "randperm", "range", "zeros"}
)
"""Functions of numbers, whose arguments say nothing of tensors."""


class HandingOn:
    """What is known of a parameter by where it is handed on.

    ``known`` tells what one function's own code says of a parameter; None if that is nothing.
    """

    def __init__(
        self, functions: Mapping[str, FunctionNode], known: Callable[[ast.arg, FunctionNode], Any | None]
    ) -> None:
        self._functions = functions
        self._known = known

    def value(self, parameter: ast.arg, function: FunctionNode, depth: int = 0) -> Any | None:
        """The argument that a function of the file says it takes, if nothing else says that it is a tensor."""
        parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
        reads = [n for n in parents if isinstance(n, ast.Name) and n.id == parameter.arg]
        if any(isinstance(n.ctx, ast.Store) or _is_of_tensor(n, parents, self._functions) for n in reads):
            return None
        for taken, taker in self._takers(parameter.arg, function):
            value = self._known(taken, taker)
            if value is None and depth < _DEEPEST and taker is not function:
                value = self.value(taken, taker, depth + 1)
            if value is not None:
                return value
        return None

    def _takers(self, name: str, function: FunctionNode) -> Iterator[tuple[ast.arg, FunctionNode]]:
        """The parameters of functions of the file that get a value under a name."""
        listed = _listed(function)
        for call in (n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
            for called in listed.get(ast.unparse(call.func), [ast.unparse(call.func)]):
                if (taker := self._functions.get(called)) is None:
                    continue
                pairs = list(zip(positional_parameters(taker), call.args, strict=False))
                named = {p.arg: p for p in named_parameters(taker)}
                pairs += [(named[k.arg], k.value) for k in call.keywords if k.arg in named]
                yield from ((p, taker) for p, value in pairs if isinstance(value, ast.Name) and value.id == name)


def _listed(function: FunctionNode) -> dict[str, list[str]]:
    """The functions that loops' variables stand for: ``for f in (exponential, gaussian)``, also of a named list."""
    lists = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    out: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            walked = lists.get(node.iter.id) if isinstance(node.iter, ast.Name) else node.iter
            if isinstance(walked, ast.List | ast.Tuple):
                out[node.target.id] = [one.id for one in walked.elts if isinstance(one, ast.Name)]
    return out


def _is_of_tensor(read: ast.Name, parents: Mapping[ast.AST, ast.AST], own: Mapping[str, FunctionNode]) -> bool:
    """Whether a read may be a tensor's: it has attributes or parts, or a library's function computes with it."""
    around: ast.AST = parents[read]
    if isinstance(around, ast.Attribute | ast.Subscript):
        return True
    while isinstance(around, ast.BinOp | ast.UnaryOp | ast.keyword | ast.Tuple | ast.List):
        around = parents[around]
    if not isinstance(around, ast.Call) or not isinstance(around.func, ast.Attribute):
        return False
    return around.func.attr not in _MAKERS and ast.unparse(around.func.value) != "math"
