"""Which of the values that a function returns its caller reads, and what computes those."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from t2j_lsp import symbols

Wanted = Collection[object] | None
"""The places or keys of the values that are wanted of several; None for all."""


def variables_of(targets: Iterable[ast.expr]) -> set[str] | None:
    """The variables that targets are, or whose items they are; None if one is an attribute."""
    names: set[str] = set()
    for target in targets:
        inner = target.value if isinstance(target, ast.Starred | ast.Subscript) else target
        items = inner.elts if isinstance(inner, ast.Tuple | ast.List) else None
        more = variables_of(items) if items is not None else {inner.id} if isinstance(inner, ast.Name) else None
        if more is None:
            return None
        names |= more
    return names


def is_unwanted(node: ast.stmt, code: Sequence[ast.stmt], wanted: Collection[object]) -> bool:
    """Whether a statement fills in an item, that nobody wants, of a dict that is returned: ``out["aux"] = h``."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key))]):
            pass
        case _:
            return False
    nodes = [n for statement in code for n in symbols.walk(statement)]
    returned = [n.value for n in nodes if isinstance(n, ast.Return)]
    loads = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    filled = [t.value for n in nodes if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Subscript)]
    return key not in wanted and bool(returned) and all(n in returned or n in filled for n in loads)


def returned_values(node: ast.Return, wanted: Wanted) -> list[ast.AST]:
    """What a function returns, ``wanted`` of several values."""
    value = node.value
    if value is None:
        return []
    if wanted is not None and isinstance(value, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in value.elts):
        return [one for index, one in enumerate(value.elts) if {index, index - len(value.elts)} & {*wanted}]
    if wanted is not None and isinstance(value, ast.Dict) and all(isinstance(k, ast.Constant) for k in value.keys):
        pairs = zip(value.keys, value.values, strict=True)
        return [one for key, one in pairs if isinstance(key, ast.Constant) and key.value in wanted]
    return [value]


def unpacked_values(part: ast.AST, needed: Collection[str]) -> Wanted:
    """Which of the values that a statement unpacks are needed; None if it unpacks none."""
    match part:
        case ast.Assign(targets=[ast.Tuple(elts=targets)]) if not any(isinstance(t, ast.Starred) for t in targets):
            pass
        case _:
            return None
    return {
        index
        for index, one in enumerate(targets)
        if (names := variables_of([one])) is None or not names.isdisjoint(needed)
    }
