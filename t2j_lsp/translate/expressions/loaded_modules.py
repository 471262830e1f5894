"""Whole modules that are read from a file: in JAX a state dict is there, which can't be called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import MODULE_ONLY

from .context import Context

READS_FILES = names_with(Trait.READS_FILES)
WHOLE = "It is used as a module, which no file holds in JAX: load the state dict into a module made anew"
_MODULES = MODULE_ONLY | {"eval", "train"}


def is_used_as_module(ctx: Context, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value, of which nothing else is known, is called, or has a method called that only modules have."""
    parent = ctx.source.parents.get(node)
    match parent:
        case ast.Call(func=func) if func is node:
            return True
        case ast.Attribute(attr=attr) if isinstance(call := ctx.source.parents.get(parent), ast.Call):
            if call.func is not parent:
                return False
            return attr in _MODULES or attr in names_with(Trait.MOVES) and is_used_as_module(ctx, call, depth)
        case ast.Subscript(value=value, slice=ast.Constant()) if value is node:
            return is_used_as_module(ctx, parent, depth)
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value) if value is node:
            return any(is_used_as_module(ctx, read, depth + 1) for read in _reads(ctx, target) if depth < 3)
        case ast.Return() if depth < 3:
            return any(is_used_as_module(ctx, call, depth + 1) for call in _calls_of_function_around(ctx, node))
    return False


def _reads(ctx: Context, target: ast.Name | ast.Attribute) -> Iterator[ast.expr]:
    """What is read by the same name in the same function, or anywhere if it is an attribute or of the module level."""
    around = next((at for at in ancestors(target, ctx.source.parents) if isinstance(at, ast.FunctionDef)), None)
    inside = set(symbols.walk(around)) if around is not None and isinstance(target, ast.Name) else None
    text = ast.unparse(target)
    for node in ctx.source.nodes:
        if isinstance(node, type(target)) and isinstance(node.ctx, ast.Load) and (inside is None or node in inside):
            if ast.unparse(node) == text:
                yield node


def _calls_of_function_around(ctx: Context, node: ast.expr) -> Iterator[ast.Call]:
    around = next((at for at in ancestors(node, ctx.source.parents) if isinstance(at, ast.FunctionDef)), None)
    for call in ctx.source.nodes if around is not None else ():
        fact = ctx.fact(call.func) if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and isinstance(fact, Function) and fact.info.node is around:
            yield call
