"""Functions that update tensors by the gradients stored in them, ``sgd([w, b], lr)``.

In JAX they are given the gradients, too, and return the new tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.text import Source

from .gradient_forms import is_name

_WITHOUT = names_with(Trait.NO_GRADIENT)


@dataclass(frozen=True)
class UpdateCall:
    """The only call of such a function."""

    call: ast.Call
    function: ast.FunctionDef
    body: ast.stmt
    """All that the function does: its loop, or the ``with`` around it."""
    loop: ast.For
    tensors: ast.expr
    """The argument that the loop is over."""


def update_call(ctx: Context, node: ast.stmt) -> UpdateCall | None:
    """The call of a function of the module level that does nothing but loop over one of its parameters."""
    if not isinstance(node, ast.Expr) or not isinstance(call := node.value, ast.Call):
        return None
    fact = ctx.fact(call.func)
    if not isinstance(call.func, ast.Name) or not isinstance(fact, Function) or fact.info.external:
        return None
    function = fact.info.node
    if fact.info.owner is not None or fact.info.outer is not None or not isinstance(function, ast.FunctionDef):
        return None
    if call.func.id != function.name:
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    loop = _loop(ctx, body[0]) if len(body) == 1 else None
    if loop is None or not isinstance(loop.iter, ast.Name) or not _is_called_once(ctx, function.name):
        return None
    tensors = _argument(fact.info, call, loop.iter.id)
    free = not any(isinstance(n, ast.Name) and n.id == "grads" for n in symbols.walk(function))
    return UpdateCall(call, function, body[0], loop, tensors) if tensors is not None and free else None


def _loop(ctx: Context, node: ast.stmt) -> ast.For | None:
    """A loop, or the loop that is all of a block without gradients."""
    match node:
        case ast.For(target=ast.Name(), orelse=[]):
            return node
        case ast.With(items=items, body=[ast.For(target=ast.Name(), orelse=[]) as loop]):
            calls = [i.context_expr for i in items if isinstance(i.context_expr, ast.Call)]
            if len(calls) == len(items) and all(context_name(ctx.fact(c.func), c) in _WITHOUT for c in calls):
                return loop
    return None


def _is_called_once(ctx: Context, name: str) -> bool:
    """Whether nothing but one call reads a name."""
    return sum(isinstance(n, ast.Name) and n.id == name for n in ctx.source.nodes) == 1


def _argument(info: FunctionInfo, call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives a parameter, if the function has only plain ones."""
    arguments = info.node.args
    if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        return None
    if any(k.arg is None for k in call.keywords):
        return None
    return {parameter.arg: value for parameter, value in bound_arguments(call, info)}.get(name)


def write_update(ctx: Context, one: UpdateCall, value: str, gradient: str, statements: StatementRewriter) -> None:
    """The function returns what it made of each tensor, ``value``, and of its gradient."""
    assert isinstance(one.loop.target, ast.Name) and isinstance(one.loop.iter, ast.Name)
    variables = f"{one.loop.target.id}, {gradient}"
    ctx.edits.replace(one.body, f"return [{value} for {variables} in zip({one.loop.iter.id}, grads)]")
    if one.function.returns is not None:
        start, end = ctx.source.span(one.function.returns)
        ctx.edits.add(start, end, f"list[{statements.renderer.need('jax')}.Array]")


def new_tensors(one: UpdateCall, names: list[str], grads: str, statements: StatementRewriter) -> str:
    """``w, b = sgd(grads, [w, b], lr)``."""
    render = statements.renderer.argument
    arguments = [grads, *(render(a).text for a in one.call.args)]
    arguments += [f"{k.arg}={render(k.value).text}" for k in one.call.keywords]
    kept = f"{ast.unparse(one.tensors)} = " if isinstance(one.tensors, ast.Name) else ""
    comma = "," if len(names) == 1 else ""
    return f"{', '.join(names)}{comma} = {kept}{one.function.name}({', '.join(arguments)})"


def has_other_name(source: Source, function: ast.AST | None, name: str, listed: ast.expr) -> bool:
    """Whether a tensor of a list gets a second name here, or is in another container that is read by its name."""
    for node in _reads(source, function, name):
        parent = source.parents.get(node)
        in_container = isinstance(parent, ast.List | ast.Tuple | ast.Dict | ast.Set)
        match source.parents.get(parent) if in_container and parent is not None else parent:
            case ast.Assign(targets=[ast.Name(id=held)]) | ast.AnnAssign(target=ast.Name(id=held)):
                if not is_name(listed, held) and (not in_container or any(_reads(source, function, held))):
                    return True
            case ast.Assign() | ast.NamedExpr():
                return True
    return False


def _reads(source: Source, function: ast.AST | None, name: str) -> Iterator[ast.Name]:
    """Where a variable of a function, or of the module level, is read."""
    for node in source.nodes if function is None else symbols.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            scopes = scopes_around(node, source.parents) if function is None else ()
            if not any(name in source.symbols.bound(one) for one in scopes):
                yield node
