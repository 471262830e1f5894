"""Losses that a training program computes outside of its compiled steps, to evaluate, are compiled themselves.

A loss is a dozen operations, each of which costs a call of its own: a millisecond, where the compiled one takes
microseconds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from t2j_lsp import symbols
from t2j_lsp.translate.source.folding.uses import bound_function
from t2j_lsp.translate.source.helpers import Helper

_ARRAY = "jax.Array"


def with_compiled_losses(copied: Sequence[Helper], user: ast.Module) -> list[Helper]:
    """The helpers, those losses with a decorator that ``user``, the output, calls where nothing is compiled."""
    losses = {helper.name for helper in copied if _is_loss_of_arrays(helper)}
    called = set(_called_outside(user, losses)) if losses else set()
    return [_compiled(helper) if helper.name in called else helper for helper in copied]


def _compiled(helper: Helper) -> Helper:
    imports = tuple(sorted({*helper.imports, "import jax"}))
    return replace(helper, text=f"@jax.jit\n{helper.text}", imports=imports)


def _is_loss_of_arrays(helper: Helper) -> bool:
    """Whether a helper is a loss, and all that is left of its parameters are arrays."""
    if not helper.file.startswith("loss"):
        return False
    match ast.parse(helper.text).body:
        case [ast.FunctionDef(args=ast.arguments(vararg=None, kwarg=None) as given, decorator_list=[])]:
            each = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            return all(one.annotation is not None and ast.unparse(one.annotation) == _ARRAY for one in each)
    return False


def _called_outside(user: ast.Module, losses: set[str]) -> Iterator[str]:
    """The losses that are called outside of modules and compiled functions, also by variables that hold them."""
    held = {name: name for name in losses}
    for node in ast.walk(user):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=ast.Name(id=loss)):
                held |= {name: loss} if loss in losses else {}
    for call in _run_outside(user):
        match call:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in held:
                yield held[name]


def _run_outside(user: ast.Module) -> list[ast.AST]:
    """The code that isn't compiled: not that of functions that compiled code alone names."""
    inside = {node.name for node in user.body if isinstance(node, ast.FunctionDef)}
    bound = {*_bound(user)}
    while True:
        outside = [*_outside(user, inside)]
        named = {node.id for node in outside if isinstance(node, ast.Name)} & inside - bound
        if not named:
            return outside
        inside -= named


def _bound(user: ast.Module) -> Iterator[str]:
    """The functions that ``nnx.jit_partial`` and ``bound_jit`` compile."""
    for node in ast.walk(user):
        match node:
            case ast.Call(func=ast.Attribute(attr="jit_partial"), args=[ast.Name(id=name), *_]):
                yield name
            case ast.Call() if isinstance(function := bound_function(node), ast.Name):
                yield function.id


def _outside(node: ast.AST, inside: set[str]) -> Iterator[ast.AST]:
    match node:
        case ast.ClassDef(bases=bases) if any(ast.unparse(base).endswith(".Module") for base in bases):
            return
        case ast.FunctionDef(name=name, decorator_list=decorators):
            if name in inside or any("jit" in ast.unparse(one) for one in decorators):
                return
    yield node
    for child in symbols.children(node):
        yield from _outside(child, inside)
