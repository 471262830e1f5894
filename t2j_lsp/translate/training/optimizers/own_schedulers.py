"""Schedulers that a file derives from PyTorch's: ``class PolyLR(_LRScheduler)`` with a ``get_lr`` of its own.

Where such a class only says what the rates are, by the count of steps and the rates that the optimizer began with, it
derives from the helper ``OwnLRScheduler``, and ``optax.inject_hyperparams`` keeps the rate that it sets.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.definitions import Class, ClassInfo
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.objects import Objects

from .first_counts import is_first_count

_OF_BASE = frozenset({"base_lrs", "last_epoch"})
"""What such a class may read of its base, and the rates of the base are made of nothing else."""
_HELD = _OF_BASE | {"optimizer", "_last_lr", "_step_count", "verbose", "_get_lr_called_within_step"}
_DONE_BY_BASE = frozenset(
    {"step", "get_last_lr", "state_dict", "load_state_dict", "rates", "_initial_step", "_get_closed_form_lr"}
)


class OwnSchedulers:
    """Finds the schedulers that a file defines, and what makes them."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        calls = (node for node in context.source.nodes if isinstance(node, ast.Call))
        self.made = {node: info for node in calls if (info := self._class(node)) is not None}

    def _class(self, call: ast.Call) -> ClassInfo | None:
        fact = self.ctx.fact(call.func)
        info = fact.info if isinstance(fact, Class) else None
        return info if info is not None and _is_scheduler(info) else None

    def optimizers(self) -> Iterator[tuple[ast.expr, ast.Call]]:
        """What each of them is given as its optimizer, and the call that does."""
        for call, info in self.made.items():
            if (given := _given(call, info)) is not None:
                yield given, call

    def plan(self, fits: Collection[ast.Call]) -> None:
        """Have the classes derive from the helper that surely may; ``fits`` are calls whose optimizer has one rate."""
        for node, info in self.ctx.inference.classes.items():
            if not _is_scheduler(info) or not _says_rates_alone(info):
                continue
            calls = [call for call, made in self.made.items() if made is info]
            if all(call in fits and _begins(call, info) for call in calls):
                self.ctx.plan.on_expression(node.bases[0], lambda renderer: Piece(renderer.need("OwnLRScheduler")))


def _is_scheduler(info: ClassInfo) -> bool:
    return not names_with(Trait.DERIVED_SCHEDULE).isdisjoint(info.torch_bases)


def _says_rates_alone(info: ClassInfo) -> bool:
    """Whether a class computes rates of the count, the first rates and what it was given, and does nothing else."""
    node, methods = info.node, info.methods
    of_torch = len(info.bases) == 1 and isinstance(info.bases[0], Qual)
    if not of_torch or node.keywords or node.decorator_list:
        return False
    if "get_lr" not in methods or not _DONE_BY_BASE.isdisjoint(methods):
        return False
    if "__init__" in methods and _base_call(info) is None:
        return False
    uses = [n for n in symbols.walk(node) if isinstance(n, ast.Attribute) and _is_self(n.value)]
    stored = {n.attr for n in uses if not isinstance(n.ctx, ast.Load)}
    known = stored | _OF_BASE | methods.keys()
    named = sum(_is_self(n) for n in symbols.walk(node)) - len(uses)
    old = sum(isinstance(n, ast.Call) and bool(n.args) and symbols.is_super(n) for n in symbols.walk(node))
    return stored.isdisjoint(_HELD) and all(n.attr in known for n in uses) and named == old


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _base_call(info: ClassInfo) -> ast.Call | None:
    """The call of the base's constructor, if it is given the optimizer and where to begin, and nothing else."""
    of_base = [n for n in symbols.walk(info.node) if isinstance(n, ast.Attribute) and symbols.is_super(n.value)]
    for statement in info.methods["__init__"].node.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__") as func) as call) if of_base == [func]:
                given = [*call.args, *(k.value for k in call.keywords)]
                named = [k.arg for k in call.keywords]
                fits = len(call.args) <= 2 and named in ([], ["last_epoch"], ["optimizer"], ["optimizer", "last_epoch"])
                return call if fits and len(given) in (1, 2) and isinstance(given[0], ast.Name) else None
    return None


def _given(call: ast.Call, info: ClassInfo) -> ast.expr | None:
    """What a scheduler's constructor is given as its optimizer."""
    method = info.method("__init__")
    if method is None:
        return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "optimizer"), None)
    base = _base_call(info) if "__init__" in info.methods else None
    name = next(iter([*base.args, *(k.value for k in base.keywords)])) if base is not None else None
    if not isinstance(name, ast.Name):
        return None
    bound = [value for parameter, value in bound_arguments(call, method) if parameter.arg == name.id]
    return bound[0] if len(bound) == 1 else None


def _begins(call: ast.Call, info: ClassInfo) -> bool:
    """Whether a scheduler begins with the first step, as no checkpoint is told of."""
    method = info.method("__init__")
    if method is None:
        return len(call.args) + len(call.keywords) == 1
    base = _base_call(info)
    given = [*base.args, *(k.value for k in base.keywords)][1:] if base is not None else []
    return all(is_first_count(value, method, [call]) for value in given)
