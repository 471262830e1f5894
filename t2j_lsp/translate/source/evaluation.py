"""Whether an expression is evaluated just once, and what decides whether it is."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile

from t2j_lsp.symbols import ancestors, walk


def evaluated_once(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether an expression runs once whenever its statement does: nothing decides about it, and nothing repeats it."""
    repeats = ast.Lambda | ast.comprehension | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
    return not any(isinstance(place, repeats) for place in _of_expression(node, parents)) and not any(
        True for _ in _deciding(node, parents)
    )


def asked_before(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> set[str]:
    """The names in the conditions that decide about an expression: ``x`` for ``f(x) if x is not None else 0``."""
    return {n.id for test in _deciding(node, parents) for n in walk(test) if isinstance(n, ast.Name)}


def _of_expression(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """What an expression stands in, as far as its statement."""
    yield from takewhile(lambda place: not isinstance(place, ast.stmt), ancestors(node, parents))


def _deciding(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.expr]:
    """The conditions inside a statement that decide whether an expression runs."""
    inner = node
    for place in _of_expression(node, parents):
        match place:
            case ast.IfExp(test=test) if test is not inner:
                yield test
            case ast.BoolOp(values=values) if values[0] is not inner:
                yield from takewhile(partial(operator.is_not, inner), values)
        inner = place
