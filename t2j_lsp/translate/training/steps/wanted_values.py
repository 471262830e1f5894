"""Which of the values that a function returns its caller reads, and what computes those."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters

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


_FRESH = (ast.Constant, ast.BinOp, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def fresh_variables(code: Iterable[ast.stmt]) -> set[str]:
    """The variables that code only gives values of their own, which no other name may share: ``out = []``."""
    fresh: set[str] = set()
    shared: set[str] = set()
    for node in code:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if not isinstance(target, ast.Subscript | ast.Attribute):
                    names = {n.id for n in symbols.walk(target) if isinstance(n, ast.Name)}
                    own = isinstance(target, ast.Name) and _is_fresh(node.value)
                    (fresh if own else shared).update(names)
    return fresh - shared


def _is_fresh(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="dict" | "list" | "set"), args=[], keywords=[]):
            return True
    return isinstance(value, _FRESH)


def written_into(node: ast.stmt) -> set[str]:
    """The variables whose values a statement changes in place."""
    match node:
        case ast.AugAssign(target=target):
            return variables_of([target]) or set()
        case ast.Assign(targets=targets):
            return {name for t in targets if isinstance(t, ast.Subscript) for name in variables_of([t]) or ()}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return {name}
    return set()


def names_of_others(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The variables of a function that its caller sees what is written into: parameters, and those of outer scopes."""
    outer = [n for n in symbols.walk(function) if isinstance(n, ast.Global | ast.Nonlocal)]
    return {a.arg for a in named_parameters(function)} | {name for n in outer for name in n.names}


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
    return (
        isinstance(key, str)
        and key not in wanted
        and bool(returned)
        and all(n in returned or n in filled for n in loads)
    )


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
