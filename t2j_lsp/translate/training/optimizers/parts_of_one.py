"""Optimizers of different parts of one module.

Where one statement steps by several, each holds the module, and says which part it updates:

    train(net, SGD(net.parameters(), lr=0.1))          nnx.Optimizer(net, tx, wrt=nnx.Param)
    train(net, SGD(net.head.parameters(), lr=0.1))     nnx.Optimizer(net, tx, wrt=nnx.All(nnx.Param, in_head))

The step differentiates by what its optimizer updates, ``nnx.DiffState(0, optimizer.wrt)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.optimizer_plan import Group
from t2j_lsp.translate.training.program.named_modules import targets
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import Reader, Refused

from .frozen_groups import gradients_are_seen, optimizer_plans

LEFT_BY_OTHERS = (
    "The gradients are zeroed behind the step only, and another optimizer has other parameters of the module, so that "
    "some may be left from before. Zero them in front of the backward pass."
)


def plan_parts(context: Context, objects: Objects) -> None:
    """Plan such optimizers for the whole module, unless the program asks for gradients that they don't use."""
    if gradients_are_seen(context):
        return
    reader, plans = Reader(context.inference), context.plan.optimizers
    for node in context.source.nodes:
        for subject in _stepped(reader, node):
            made = objects.constructors(subject, objects.scope(node)) or []
            places = {call: _place(context, objects, call, objects.scope(node)) for call in made}
            whole = _common([place for place in places.values() if place is not None])
            if len(set(places.values())) < 2 or None in places.values() or not whole:
                continue
            for call, place in places.items():
                assert place is not None
                if part := place[len(whole) + 1 :]:
                    plans[call] = replace(plans[call], target=plans[call].target.removesuffix(f".{part}"), part=part)


def _stepped(reader: Reader, node: ast.AST) -> Iterator[ast.expr]:
    """The optimizer that a statement steps by."""
    try:
        call = reader.read(node) if isinstance(node, ast.Expr) else None
    except Refused:
        return
    if call is not None and call.kind == "step":
        yield call.subject


def _place(context: Context, objects: Objects, call: ast.Call, scope: VariableScope) -> str | None:
    """What an optimizer updates, as it is called where it steps; None where that isn't one module with a plain name."""
    plan = context.plan.optimizers.get(call)
    if plan is None or plan.groups or len(updated := targets(plan.target) if plan.target else []) != 1:
        return None
    seen = objects.seen_from(updated[0], objects.scope(call), scope)
    return seen if seen is not None and all(part.isidentifier() for part in seen.split(".")) else None


def _common(places: list[str]) -> str:
    """The module that all of them are, or are parts of; empty where there is none."""
    shared: list[str] = []
    for level in zip(*(place.split(".") for place in places), strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return "" if shared == ["self"] else ".".join(shared)


def shares_its_modules(
    context: Context, objects: Objects, scope: VariableScope, modules: Sequence[str], groups: Sequence[Group]
) -> bool:
    """Whether steps by another optimizer may leave gradients in what one updates: it doesn't zero all of them."""
    for call, plan in optimizer_plans(context):
        seen = (objects.seen_from(text, objects.scope(call), scope) for text in targets(plan.target or "_"))
        others = {text for text in seen if text is not None}
        if not {_root(text) for text in others}.isdisjoint(map(_root, modules)):
            covered = all(any(f"{text}.".startswith(f"{other}.") for other in others) for text in modules)
            partly = any(group.frozen for group in plan.groups) and plan.groups != tuple(groups)
            if partly or not covered:
                return True
    return False


def _root(place: str) -> str:
    """The variable that a module is in, or the attribute of an object."""
    return ".".join(place.split(".")[: 2 if place.startswith("self.") else 1])
