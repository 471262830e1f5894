"""Windows of an array that begin where another array says: ``torch.stack([data[i : i + n] for i in starts])``.

One index takes them all, where each slice is an operation of its own, and fails under jit.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .facts import Fact, Qual, Tensor
from .library import Trait, names_with


@dataclass(frozen=True)
class Windows:
    """What a list of windows is made of."""

    array: ast.expr
    starts: ast.expr
    first: list[ast.expr]
    """What is added to a start for the first element, as terms of a sum."""
    end: list[ast.expr]
    """The same for the element behind the last one."""


def windows(listed: ast.AST | None) -> Windows | None:
    """What ``[data[i + 1 : i + 1 + n] for i in starts]`` is made of; None for another list."""
    match listed:
        case ast.ListComp(
            elt=ast.Subscript(value=ast.Name() | ast.Attribute() as array, slice=ast.Slice(lower, upper, None)),
            generators=[ast.comprehension(target=ast.Name(id=start), iter=starts, ifs=[], is_async=0)],
        ) if lower is not None and upper is not None:
            first, end = _beyond(start, lower), _beyond(start, upper)
            reads = {
                n.id for one in (array, *(first or []), *(end or [])) for n in ast.walk(one) if isinstance(n, ast.Name)
            }
            if first is not None and end and start not in reads:
                return Windows(array, starts, first, end)
    return None


def stacks_windows(call: ast.AST | None, fact: Callable[[ast.expr], Fact]) -> bool:
    """Whether a call stacks windows of one length, of an array, begun where another says, along a new first axis."""
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return False
    called, made = fact(call.func), windows(call.args[0])
    if made is None or not isinstance(called, Qual) or called.name not in names_with(Trait.STACKS):
        return False
    starts, terms = fact(made.starts), [*made.first, *made.end]
    arrays = isinstance(fact(made.array), Tensor) and isinstance(starts, Tensor) and starts.rank in (1, None)
    return arrays and not any(isinstance(fact(term), Tensor) for term in terms)


def _beyond(start: str, bound: ast.expr) -> list[ast.expr] | None:
    """The terms of ``n + 1`` in ``start + n + 1``; None where the bound is no such sum."""
    terms = [*_terms(bound)]
    others = [term for term in terms if not (isinstance(term, ast.Name) and term.id == start)]
    return others if len(others) == len(terms) - 1 else None


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            yield node
