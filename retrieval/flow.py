"""What becomes of the values in a piece of JAX code: those that nothing reads, and results that leave a loop too early.

Much that goes wrong in silence shows here, whatever the code is about and whatever its names are: a schedule that is
made and not used, a state that the next step does not get, a bias that is no part of the sum.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from .features import parse, same


@functools.lru_cache(maxsize=256)
def unused(code: str) -> tuple[str, ...]:
    """Words for what is assigned, taken or defined and never read; none where the code is no Python."""
    module = parse(code)
    if module is None:
        return ()
    problems = [*_unread_attributes(module), *_unread_definitions(module)]
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            problems += _unread(node)
        if isinstance(node, ast.For | ast.While):
            problems += ["returns in loop"] * any(isinstance(n, ast.Return) for n in ast.walk(node))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _pure(node.value.func):
            problems += [f"unused result of {_last(node.value.func)}", "unused result"]
    return tuple(problems)


def _unread(function: ast.FunctionDef) -> Iterator[str]:
    """Parameters and variables of a function that nothing in it reads."""
    nodes = [n for statement in function.body for n in ast.walk(statement)]
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for argument in (*function.args.args, *function.args.kwonlyargs):
        if argument.arg not in read and argument.arg not in ("self", "rngs", "_"):
            yield "unused parameter"
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _targets(target, node.value, read)


def _targets(target: ast.expr, value: ast.expr, read: set[str]) -> Iterator[str]:
    made = f"{same(_last(value.func))}()" if isinstance(value, ast.Call) else type(value).__name__
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    for place, part in enumerate(parts):
        if isinstance(part, ast.Name) and part.id not in read:
            kind = f"one of several {place}" if len(parts) > 1 else "value"
            yield from (f"unused {kind}", f"unused {made}")


def _unread_attributes(module: ast.Module) -> Iterator[str]:
    """Attributes that a class sets on itself and never reads."""
    for node in module.body:
        if not isinstance(node, ast.ClassDef):
            continue
        own = [
            n
            for n in ast.walk(node)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
        ]
        read = {n.attr for n in own if isinstance(n.ctx, ast.Load)}
        kinds = {}
        for statement in ast.walk(node):
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
                for target in statement.targets:
                    if isinstance(target, ast.Attribute):
                        kinds[target.attr] = same(_last(statement.value.func))
        for name in sorted({n.attr for n in own if isinstance(n.ctx, ast.Store)} - read):
            yield from ("unused attribute", f"unused attribute {kinds.get(name, '')}")


def _unread_definitions(module: ast.Module) -> Iterator[str]:
    """Functions and variables of the program that nothing in it reads; what is defined last is for the outside."""
    read = {n.id for n in ast.walk(module) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    functions = [n for n in module.body if isinstance(n, ast.FunctionDef)]
    for function in functions[:-1]:
        if function.name not in read:
            yield "unused function"
    for node in module.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _targets(target, node.value, read)


def _pure(function: ast.expr) -> bool:
    """Whether a function is one that gives a new value and changes nothing, as those of JAX and optax."""
    while isinstance(function, ast.Attribute | ast.Subscript):
        if isinstance(function, ast.Attribute) and function.attr == "at":
            return True
        function = function.value
    return isinstance(function, ast.Name) and function.id in ("jnp", "jax", "lax", "optax")


def _last(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return type(node).__name__
