"""What runs between a backward pass and the step, and reaches the optimizer or the modules by functions that it calls.

``self.adjust()`` sets the learning rate of the step that follows it: in front of it stands the gradient, behind it the
update.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import called_function, reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Fact, Object
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.step_calls import Item, Phase, Refused, limits

LATE_LIMIT = "What gradients are clipped to is computed behind the backward pass."
CLIPPED_EARLY = "Gradients are clipped before those of another loss are added to them."
BETWEEN = "Code between the backward pass and the step uses the module or the optimizer."


def reaches_training(inference: Inference, node: ast.AST, modules: Collection[str]) -> bool:
    """Whether some code, or a function of the file that it calls, names an optimizer, a schedule, or such a module.

    ``modules`` are the last names of those that are trained: ``net`` of ``self.net``.
    """
    called = [info.node for info in reached_functions(inference, [node])]
    for inner in (n for code in (node, *called) for n in symbols.walk(code) if isinstance(n, ast.expr)):
        if _is_training(inference.fact(inner)) or isinstance(inner, ast.Attribute) and inner.attr == "param_groups":
            return True
        if isinstance(inner, ast.Call):
            if _was_given_training(inference, inner) or _is_given_trainer(inference, inner):
                return True
    inside = (n for code in called for n in symbols.walk(code))
    return any(getattr(n, "attr", getattr(n, "id", None)) in modules for n in inside)


def concerns(inference: Inference, flow: DataFlow, node: ast.AST, trained: Collection[str]) -> bool:
    """Whether code has to do with what a step updates, by variables ``trained``: it keeps the best weights."""
    used = flow.reads(node) | flow.writes(node)
    return not used.isdisjoint(trained) or reaches_training(
        inference, node, {name.rpartition(".")[2] for name in trained}
    )


def where_limits_are_made(flow: DataFlow, items: Sequence[Item], phase: Phase, call: int) -> int:
    """Where a step is called that stands at ``call``: where it clips to what is computed behind its backward pass.

    Raises Refused.
    """
    early = (items[index].step_call for index in range(phase.backs[0], phase.backs[-1]))
    if any(one is not None and one.kind == "clip" for one in early):
        raise Refused(CLIPPED_EARLY)
    made, late = set[str](), call
    for index in range(phase.backs[-1] + 1, max(phase.steps)):
        clip = items[index].step_call
        if clip is None:
            made |= flow.writes(items[index].node)
        elif clip.kind == "clip" and any(flow.reads(given) & made for given in limits(clip)):
            late = index
    if late != call and items[late].condition is not None:
        raise Refused(LATE_LIMIT)
    return late


def names_training(inference: Inference, node: ast.AST) -> bool:
    """Whether code itself names an optimizer or a schedule."""
    return any(_is_training(inference.fact(n)) for n in symbols.walk(node) if isinstance(n, ast.expr))


def _is_training(fact: Fact) -> bool:
    return isinstance(fact, Object) and fact.kind in ("scheduler", "optimizer")


def _is_given_trainer(inference: Inference, call: ast.Call) -> bool:
    """Whether something of which nothing is known is given the object that has the optimizer: ``hook(self)``."""
    if called_function(inference.fact(call.func)) is not None:
        return False
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        fact = inference.fact(given)
        if isinstance(fact, Instance):
            held = [f for info in fact.cls.info.ancestry() for f in info.attributes.values()]
            if any(map(_is_training, held)):
                return True
    return False


def _was_given_training(inference: Inference, call: ast.Call) -> bool:
    """Whether it is a method of an object that was made with an optimizer: ``warmup = LinearWarmup(optimizer)``."""
    if not isinstance(call.func, ast.Attribute) or called_function(inference.fact(call.func)) is not None:
        return False
    for made in inference.source.assigned_calls.get(ast.unparse(call.func.value), ()):
        given = [*made.args, *(keyword.value for keyword in made.keywords)]
        if called_function(inference.fact(made.func)) is None and any(_is_training(inference.fact(g)) for g in given):
            return True
    return False
