"""Lists of tensors that a function makes and that nothing else holds: what is written into them is bound anew."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, function_around, with_ancestors
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

_OF_LISTS = names_with(Trait.OF_LISTS)
_NEW = names_with(Trait.NEW_TENSOR)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def is_own_list(ctx: Context, node: ast.expr) -> bool:
    """Whether a name is a list of new tensors that its function made, none of which was taken out before.

    What is read behind the place that is asked about is read from the list as it is bound then.
    """
    parents = ctx.source.parents
    function = function_around(node, parents)
    if not isinstance(node, ast.Name) or function is None:
        return False
    names = [n for n in symbols.walk(function) if isinstance(n, ast.Name) and n.id == node.id]
    made = [parents[n] for n in names if isinstance(n.ctx, ast.Store)]
    arguments = {a.arg for a in symbols.walk(function) if isinstance(a, ast.arg)}
    outer = (n for n in symbols.walk(function) if isinstance(n, ast.Global | ast.Nonlocal))
    if not made or node.id in arguments or any(node.id in one.names for one in outer):
        return False
    if not all(isinstance(one, ast.Assign) and _is_new_list(ctx, one.value) for one in made):
        return False
    reads = [n for n in names if isinstance(n.ctx, ast.Load) and not _is_looked_at(ctx, n)]
    around = [loop for loop in ancestors(node, parents) if isinstance(loop, _LOOPS)]
    repeated = any(one not in symbols.walk(loop) for loop in around for one in made)
    return not reads or not repeated and all(read.lineno > node.lineno for read in reads)


def _is_new_list(ctx: Context, value: ast.expr) -> bool:
    match value:
        case ast.Call(func=func):
            return _is_of_lists(ctx, func) and not ast.unparse(func).endswith("_")
        case ast.ListComp(elt=element):
            return _is_new(ctx, element)
    return False


def _is_new(ctx: Context, value: ast.expr) -> bool:
    """Whether an expression of tensors gives one that shares its storage with no other."""
    match value:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return True
        case ast.Call(func=ast.Attribute(value=owner, attr="to" | "type" | "float")):
            return _is_new(ctx, owner)
        case ast.Call(func=func):
            fact = ctx.fact(func)
            if isinstance(fact, Qual):
                return fact.name.startswith("torch.") and fact.name.endswith("_like")
            return isinstance(func, ast.Attribute) and func.attr in _NEW
    return False


def _is_looked_at(ctx: Context, name: ast.Name) -> bool:
    """Whether a read takes no tensor out of the list: for an operation on lists, or to compute others."""
    parents = ctx.source.parents
    parent = parents[name]
    if isinstance(parent, ast.Call) and name in parent.args:
        if _is_of_lists(ctx, parent.func) or ast.unparse(parent.func) == "len":
            return True
    return any(
        isinstance(at, ast.ListComp) and name in _iterated(at.generators) and _is_new(ctx, at.elt)
        for at in with_ancestors(name, parents)
    )


def _iterated(generators: Iterable[ast.comprehension]) -> set[ast.AST]:
    return {node for one in generators for node in symbols.walk(one.iter)}


def _is_of_lists(ctx: Context, func: ast.expr) -> bool:
    fact = ctx.fact(func)
    return isinstance(fact, Qual) and fact.name in _OF_LISTS
