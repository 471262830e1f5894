"""Cached functions that only call another one with what they are given: they are that one, cached.

@functools.cache
def bound(step, *modules):                          # What it is.
    \"\"\"What it is.\"\"\"                                 bound = functools.cache(functools.partial(jit, graph=False))
    return jit(step, *modules, graph=False)
"""

from __future__ import annotations

import ast

from .definitions import definition
from .literals import is_literal

_CACHE = "functools.cache"


def as_partial(text: str, width: int) -> str:
    """The definition of such a function as an assignment, if it fits into a line; others as they are."""
    node = definition(text)
    said = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
    match node:
        case ast.FunctionDef(name=name, args=taken, decorator_list=[cache], body=[*_, ast.Return(ast.Call() as call)]):
            pass
        case _:
            return text
    plain = isinstance(call.func, ast.Attribute) and len(node.body) == 1 + (said is not None)
    if not plain or ast.unparse(cache) != _CACHE or taken.kwarg or taken.kwonlyargs or taken.defaults:
        return text
    given = [a.arg for a in [*taken.posonlyargs, *taken.args]] + ([f"*{taken.vararg.arg}"] if taken.vararg else [])
    options = [ast.unparse(keyword) for keyword in call.keywords if keyword.arg and is_literal(keyword.value)]
    if [ast.unparse(a) for a in call.args] != given or not options or len(options) < len(call.keywords):
        return text
    made = f"{name} = {_CACHE}(functools.partial({', '.join([ast.unparse(call.func), *options])}))"
    comment = "".join(f"# {line}".rstrip() + "\n" for line in (said or "").splitlines() if line)
    return f"{comment}{made}\n" if len(made) <= width else text
