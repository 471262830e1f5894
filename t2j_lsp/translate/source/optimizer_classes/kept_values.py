"""Values that a step computes once for all parameters and keeps in a group: they are computed for each in JAX.

``buffered = group["buffer"][step % 10]``, and ``if step == buffered[0]``: XLA computes what is the same only once.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols


def kept_option(body: Sequence[ast.stmt], group: str) -> tuple[str, str] | None:
    """The option that holds what was computed before, and the variable of one of its items; None if there is none."""
    for node in body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Subscript(
                    value=ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(option)))
                ),
            ) if owner == group and _branch(body, name) is not None:
                return option, name
    return None


def computed_anew(body: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """The statements of a step that computes for each parameter what it would read from an item."""
    branch = _branch(body, name)
    out: list[ast.stmt] = []
    for node in body:
        if node is branch and isinstance(branch, ast.If):
            out += [s for s in branch.orelse if not _stores(s, name)]
        elif not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name):
            out.append(node)
    return out


def _branch(body: Sequence[ast.stmt], name: str) -> ast.If | None:
    """The only statement that uses an item: it reads the values where they are those of this step, or stores them."""
    uses = [s for s in body if any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(s))]
    match uses:
        case [ast.Assign(), ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])) as branch]:
            asks = f"{name}[0]" in (ast.unparse(left), ast.unparse(right))
            reads = all(isinstance(s, ast.Assign) and not _stores(s, name) for s in branch.body)
            rest = [s for s in branch.orelse if not _stores(s, name)]
            again = any(isinstance(n, ast.Name) and n.id == name for s in rest for n in symbols.walk(s))
            return branch if asks and reads and not again and _given(branch.body, name) <= _given(rest, name) else None
    return None


def _given(body: Sequence[ast.stmt], name: str) -> set[str]:
    """The variables that statements give values, but one."""
    names = (n for s in body for n in symbols.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in names} - {name}


def _stores(node: ast.stmt, name: str) -> bool:
    """``buffered[1] = n_sma``."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=owner))]):
            return owner == name
    return False


def only_keeps(node: ast.stmt, option: str) -> bool:
    """Whether a statement of a constructor does nothing but give groups an option of their own."""
    stored = [n for n in symbols.walk(node) if isinstance(n, ast.Name | ast.Subscript | ast.Attribute)]
    targets = [n for n in stored if isinstance(n.ctx, ast.Store) and not isinstance(n, ast.Name)]
    keeps = [ast.unparse(n.slice).strip("'\"") == option for n in targets if isinstance(n, ast.Subscript)]
    plain = all(isinstance(n, ast.If | ast.For | ast.Assign) for n in symbols.walk(node) if isinstance(n, ast.stmt))
    return isinstance(node, ast.If) and plain and len(keeps) == len(targets) == 1 and all(keeps)
