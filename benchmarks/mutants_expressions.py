"""Expressions of a converted text, as the operators of mutants read and rewrite them."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import flax.nnx
import jax
import jax.numpy
import optax

ROOTS: dict[str, Any] = {"jax": jax, "jnp": jax.numpy, "nnx": flax.nnx, "lax": jax.lax, "optax": optax}

_SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Statements that compute: no docstrings, assertions or errors."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.With):
            yield from statements(child)
        elif isinstance(child, ast.If | ast.For | ast.While):
            yield child
            yield from statements(child)
        elif isinstance(child, _SIMPLE):
            yield child


def expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions that a statement evaluates; of a compound one, those of its head."""
    match statement:
        case ast.If(test=head) | ast.While(test=head) | ast.For(iter=head):
            roots: list[ast.AST] = [head]
        case ast.AnnAssign(value=value):
            roots = [] if value is None else [value]
        case ast.Assign(value=value, targets=targets):
            roots = [value, *(t for t in targets if isinstance(t, ast.Subscript))]
        case _:
            roots = [statement.value] if getattr(statement, "value", None) is not None else []  # type: ignore[attr-defined]
    for root in roots:
        for node in ast.walk(root):
            if isinstance(node, ast.expr | ast.Slice) and not isinstance(getattr(node, "ctx", None), ast.Store):
                yield node


def called(node: ast.AST) -> str:
    """``sum`` of ``x.sum(...)`` and ``jnp.sum(...)``."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def dotted(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def renamed(node: ast.Call, name: str) -> ast.Call:
    new = copy.deepcopy(node)
    if isinstance(new.func, ast.Attribute):
        new.func.attr = name
    elif isinstance(new.func, ast.Name):
        new.func.id = name
    return new


def with_keyword(node: ast.Call, name: str, value: ast.expr) -> ast.Call:
    new = copy.deepcopy(node)
    for keyword in new.keywords:
        if keyword.arg == name:
            keyword.value = value
    return new


def number(node: ast.AST) -> float | int | None:
    """A literal number, signed."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    return None


def literal(value: Any) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


@cache
def signature(dotted: str) -> dict[str, Any]:
    """The defaults of a library function or class."""
    value: Any = ROOTS.get(dotted.partition(".")[0])
    for part in dotted.split(".")[1:]:
        value = getattr(value, part, None)
    try:
        parameters = inspect.signature(value.__init__ if isinstance(value, type) else value).parameters
    except (TypeError, ValueError):
        return {}
    return {n: p.default for n, p in parameters.items() if p.default is not p.empty}
