"""Modules that something unknown makes: ``nn.Sequential(LAYERS["conv"](3, 4))``.

A layer in Flax asks its constructor for ``rngs``, and a module that stayed PyTorch can't stand among NNX's. Where only
a module can stand, a call of something that isn't known is said.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.inference.looked_up import asks_for_rngs, reached
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Qual, Tuple, is_tensor
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.list_items import added_to

from .context import Context
from .torch_only import TORCH_PACKAGES, namespace, stays_torch

_OWN = frozenset({"jax", "flax", "optax", "t2j_lsp", "torch"})
ADDING = frozenset({"append", "extend", "insert", "add_module", "register_module"})
"""Methods of modules that are given modules."""
STARRED = "what {} is isn't in sight, as an import of everything brings it: import it by its name"
_NOT_KNOWN = "what {}(...) makes isn't known here: layers in Flax ask for rngs=rngs, functions don't"


def report_unknown_makers(ctx: Context, values: Iterable[ast.expr]) -> None:
    """Report the calls that make these modules and of which nothing is known."""
    for value in values:
        for call in _calls(ctx, value):
            if any(k.arg == "rngs" for k in call.keywords) or stays_torch(ctx, call) is not None:
                continue
            name, fact = ast.unparse(call.func), ctx.fact(call.func)
            if not is_known(fact):
                ctx.report.gap(call, name, "unsure", _NOT_KNOWN.format(name))
            elif isinstance(fact, Qual) and _is_foreign(fact.name):
                reason = f"{name} isn't in sight: convert it along; a PyTorch module can't be part of one of Flax"
                ctx.report.gap(call, name, "unsure", reason)


def report_called_attribute(ctx: Context, target: ast.Attribute, value: ast.expr, owner: ClassInfo) -> None:
    """Report what a library makes for an attribute of a module that is called with arrays: it is a module itself."""
    calls = [c for c in _calls(ctx, value) if isinstance(fact := ctx.fact(c.func), Qual) and _is_foreign(fact.name)]
    of_torch = any(ctx.fact(c.func).name.partition(".")[0] in TORCH_PACKAGES for c in calls)  # type: ignore[attr-defined]
    if calls and any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == target.attr
        and ctx.fact(n.func.value) == ctx.fact(target.value)
        and any(is_tensor(ctx.fact(a)) or of_torch and not is_known(ctx.fact(a)) for a in n.args)
        for info in owner.ancestry()
        for n in symbols.walk(info.node)
    ):
        report_unknown_makers(ctx, [value])


def report_unseen_namespace(ctx: Context, node: ast.Call) -> None:
    """Report ``F.conv2d(x, w)`` where an import of everything brings ``F``, and what it is isn't in sight."""
    match node.func:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in ctx.source.symbols.unbound:
            known = f"torch.nn.{attr}" in LAYERS or REGISTRY.get(f"torch.nn.functional.{attr}") is not None
            if known and not is_known(ctx.fact(node.func.value)):
                ctx.report.gap(node, f"{name}.{attr}", "unsure", STARRED.format(name))


def asks_by_name(ctx: Context, node: ast.Call) -> bool:
    """Whether all ask for ``rngs`` that a call by a name may reach; what isn't known of them is reported.

    ``getattr(nets, name)(3)``, ``globals()[name]()``.
    """
    if any(k.arg == "rngs" for k in node.keywords):
        return False
    asking = {asks_for_rngs(info) for info in reached(ctx.inference, node)}
    if len(asking) > 1:
        name = ast.unparse(node.func)
        ctx.report.gap(node, name, "unsure", _NOT_KNOWN.format(name))
    if not asking:
        _report_looked_up(ctx, node)
    return asking == {True}


def _report_looked_up(ctx: Context, node: ast.Call) -> None:
    """Report what a file of the project is asked for of which nothing is known, where it may be a module."""
    space, function = namespace(ctx, node.func), ctx.scope.function
    if space is None or function is None or not function.takes_rngs:
        return
    path = space.lstrip(".")
    if ctx.options.resolve is None or ctx.options.resolve(len(space) - len(path), path) is None:
        return
    if not any(is_tensor(ctx.fact(a)) for a in (*node.args, *(k.value for k in node.keywords))):
        name = ast.unparse(node.func)
        ctx.report.gap(node, name, "unsure", _NOT_KNOWN.format(name))


def _calls(ctx: Context, value: ast.expr, depth: int = 0) -> Iterator[ast.Call]:
    """The calls whose value this is."""
    match value:
        case ast.Starred() | ast.keyword():
            yield from _calls(ctx, value.value, depth)
        case ast.List() | ast.Tuple():
            for item in value.elts:
                yield from _calls(ctx, item, depth)
        case ast.IfExp():
            yield from _calls(ctx, value.body, depth)
            yield from _calls(ctx, value.orelse, depth)
        case ast.ListComp() | ast.GeneratorExp():
            yield from _calls(ctx, value.elt, depth)
        case ast.Call() if ctx.fact(value) == UNKNOWN:
            yield value
        case ast.Name() if _may_hold_unknown(ctx.fact(value)) and ctx.scope.function is not None and not depth:
            for node in symbols.walk(ctx.scope.function.node):
                if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [value.id]:
                    yield from _calls(ctx, node.value, 1)
                for item in added_to(node, value.id):
                    yield from _calls(ctx, item, 1)


def _may_hold_unknown(fact: Fact) -> bool:
    """Whether a value is of no known kind, or a list or tuple with such an item."""
    return fact == UNKNOWN or isinstance(fact, ListOf | Tuple) and element(fact) == UNKNOWN


def _is_foreign(name: str) -> bool:
    """Whether a library's function or class is none that rules know, nor Python's or JAX's own."""
    root = name.partition(".")[0]
    return REGISTRY.get(name) is None and root not in sys.stdlib_module_names and root not in _OWN
