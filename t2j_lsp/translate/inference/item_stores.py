"""What a write into a part of a value tells of it: ``x[:, 0] = 1`` is an array's, ``x["k"] = 1`` a dict's."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.rule.facts import STR, UNKNOWN, Fact, Tensor, is_number

from .forward_pass import dotted, is_known

_OF_CONTAINERS = frozenset(
    {"append", "extend", "insert", "items", "keys", "values", "update", "get", "pop", "setdefault", "popitem"}
)


def is_mask(index: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether an index of an array is an array of booleans."""
    fact = facts.get(index, UNKNOWN)
    if isinstance(fact, Tensor):
        return str(fact.dtype).endswith("bool")
    match index:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return is_mask(inner, facts)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return is_mask(left, facts) and is_mask(right, facts)
        case ast.Compare():
            return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in index.ops)
        case _:
            return False


_MASK_NAME = re.compile(r"(\w+_)?(masks?|valid|keep|ignored?)(_?\d+)?")


def may_be_mask(index: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether an index of unknown kind is named or written as masks are: ``x[mask]``, ``x[~keep]``."""
    match index:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return _is_open(inner, facts)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return may_be_mask(left, facts) or may_be_mask(right, facts)
        case ast.Name() | ast.Attribute():
            return _is_open(index, facts) and is_named_as_mask(index)
    return False


def is_named_as_mask(node: ast.expr) -> bool:
    """Whether something has a name that masks have, or is a part of what has one: ``keep``, ``masks[i]``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _MASK_NAME.fullmatch(name.lower()) is not None
        case ast.Subscript(value=value):
            return is_named_as_mask(value)
    return False


def _is_open(index: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether nothing tells what an index holds, or of what dtype it is."""
    fact = facts.get(index, UNKNOWN)
    return fact.dtype is None if isinstance(fact, Tensor) else not is_known(fact)


def only_arrays_take(target: ast.Subscript, value: Fact, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether nothing but an array can be written to so, whatever is known of it."""
    index = target.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if isinstance(index, ast.Tuple):
        return any(isinstance(p, ast.Slice | ast.List) or _marker(p) or _is_tensor(p, facts) for p in parts)
    if isinstance(index, ast.Slice):
        return is_number(value)
    return _marker(index) or _is_tensor(index, facts) or is_mask(index, facts)


def may_be_array(target: ast.Subscript, value: Fact, facts: Mapping[ast.AST, Fact], around: ast.AST) -> bool:
    """Whether a write of a number or a tensor may be an array's, and nothing ``around`` says that it is a container."""
    index = target.slice
    if facts.get(index, UNKNOWN) == STR or isinstance(index, ast.JoinedStr) or _is_text(index):
        return False
    if not isinstance(value, Tensor) and not isinstance(index, ast.Slice | ast.Tuple | ast.UnaryOp | ast.Constant):
        return False
    return not _used_as_container(dotted(target.value), around)


def _used_as_container(name: str, around: ast.AST) -> bool:
    """Whether a name is used as a list or a dict is."""
    for node in symbols.walk(around):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=attribute)):
                if attribute in _OF_CONTAINERS and dotted(owner) == name:
                    return True
            case ast.Subscript(value=owner, slice=index):
                if _is_text(index) and dotted(owner) == name:
                    return True
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[owner]):
                if dotted(owner) == name:
                    return True
    return False


def _marker(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, ...)


def _is_tensor(node: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    return isinstance(facts.get(node), Tensor)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
