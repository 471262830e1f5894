"""How a statement reaches an ``nnx.Rngs``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from t2j_lsp.symbols import FunctionNode, ancestors, positional_parameters, scopes_around
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN
from t2j_lsp.translate.rule.own_generators import own_generator

from .context import Context

TAKEN = "the name 'rngs' is taken here, and generators of random numbers go by it: call yours something else"
UNDER_JIT = "whoever calls the object can't pass it rngs, and drawing from those of the module level fails under jit"


def rngs_expression(ctx: Context, draw: ast.AST | None = None) -> str:
    """How to reach an ``nnx.Rngs`` from the current statement; a function that none reaches is noted down for it.

    A ``draw`` may be given a generator that the function makes for it.
    """
    if isinstance(draw, ast.Call) and (own := own_generator(draw, ctx.scope.function)) is not None:
        return own
    function = _function_around(ctx)
    if function is None or function.reads_rngs:
        _check_free(ctx, ctx.source.symbols.module if function is None else ctx.source.symbols.within(function.node))
        if ctx.rngs.module is None and ctx.scope.statement is not None and not ctx.report.quiet:
            ctx.rngs.module = ctx.scope.statement.node
        if ctx.scope.statement is not None and (
            function.name == "__call__" if function is not None else _is_called_later(ctx, draw)
        ):
            ctx.report.note(ctx.scope.statement.node, "rngs", "value-needed", UNDER_JIT)
        return "rngs"
    if (kept := _kept_by_owner(function)) is not None:
        _check_free(ctx, [name for info in kept[0].ancestry() for name in info.attributes])
        return kept[1]
    has_own = function.makes_rngs or function.seeds and _is_seeded(ctx, function)
    if not function.takes_rngs and not has_own:
        ctx.rngs.drawing.add(function.node)
    _check_free(ctx, ctx.source.symbols.within(function.node))
    return "rngs"


def _is_called_later(ctx: Context, draw: ast.AST | None) -> bool:
    """Whether what draws at the module level is a function of its own: a lambda, or a function that is handed on."""
    if draw is None or is_module(ctx.inference.facts.get(draw, UNKNOWN)):
        return False
    fact = ctx.inference.facts.get(draw)
    if isinstance(fact, Function):
        return fact.info.draws and not fact.info.builds
    return any(isinstance(around, ast.Lambda) for around in ancestors(draw, ctx.source.parents))


def seeded_generator(ctx: Context) -> str | None:
    """What a seed in a method sets: the generator that its class keeps, if that is what is drawn from; else None."""
    function = _function_around(ctx)
    if function is None or function.seeds and function.draws:
        return None
    kept = _kept_by_owner(function)
    return kept[1] if kept is not None and kept[0].is_module else None


def _kept_by_owner(function: FunctionInfo) -> tuple[ClassInfo, str] | None:
    """The class of a method that keeps a generator for its methods, and how this one reaches it."""
    owner = function.owner
    kept = owner is not None and (owner.is_module and owner.keeps_rngs or owner.has_generator)
    if owner is None or not kept or function.takes_rngs or function.static:
        return None
    first = positional_parameters(function.node)
    return owner, f"{first[0].arg}.rngs" if first else "self.rngs"


def _function_around(ctx: Context) -> FunctionInfo | None:
    """The function whose ``rngs`` the current statement sees: a method, or the outermost function around it."""
    function = ctx.scope.function
    if function is None and ctx.scope.statement is not None:
        around = scopes_around(ctx.scope.statement.node, ctx.source.parents)
        nodes = (scope for scope in around if isinstance(scope, FunctionNode))
        function = next((ctx.inference.functions.get(node) for node in nodes), None)
    while function is not None and function.outer is not None and not function.seeds and function.owner is None:
        function = function.outer
    return function


def _check_free(ctx: Context, names: Collection[str]) -> None:
    """Report that the user calls something else ``rngs``; in a file with ``nnx`` an earlier conversion wrote it."""
    if "rngs" in names and not ctx.inference.has_jax and ctx.scope.statement is not None:
        ctx.report.gap(ctx.scope.statement.node, "rngs", "unsure", TAKEN)


def _is_seeded(ctx: Context, function: FunctionInfo) -> bool:
    """Whether a statement that sets the seed is always run before the current one."""
    node: ast.AST | None = ctx.scope.statement.node if ctx.scope.statement is not None else None
    while node is not None and node is not function.node:
        block = ctx.source.block_of(node) if isinstance(node, ast.stmt) else None
        if block is not None and _seeds(ctx, block[: block.index(node)]):  # type: ignore[arg-type]
            return True
        node = ctx.source.parents.get(node)
    return False


def _seeds(ctx: Context, block: Sequence[ast.stmt]) -> bool:
    """Whether statements set the seed, whichever way they are run through."""
    for node in block:
        match node:
            case ast.If() if _seeds(ctx, node.body) and _seeds(ctx, node.orelse):
                return True
            case ast.With() if _seeds(ctx, node.body):
                return True
            case ast.Expr() | ast.Assign() if node in ctx.rngs.seeds:
                return True
    return False
