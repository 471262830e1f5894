"""Frozen parameters that an optimizer has: a group of their own, whose update is zero."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.storage import is_variable
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, ListOf, Object, Qual, Tuple
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.optimizer_plan import Group, OptimizerPlan
from t2j_lsp.translate.training.program.named_modules import is_part, targets
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .leaf_values import with_this_memory
from .name_conditions import UnclearGroups, name_condition
from .other_names import is_held_too


@dataclass(frozen=True)
class Freezing:
    """A statement that sets ``requires_grad = False`` for the parameters of a module."""

    node: ast.stmt
    module: ast.expr
    condition: str | None = None
    """Which of them, as an expression of ``name`` and ``parameter``; None for all."""


_PARAMETERS = names_with(Trait.MAKES_PARAMETER)
_INDEX = re.compile(r"\[(\d+)\]")


class FrozenGroups:
    """Adds a group of frozen parameters to the plans of optimizers."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects

    def plan(self, statements: Sequence[Freezing]) -> bool:
        """Plan a group for what each statement freezes; False, with nothing planned, where one isn't sure."""
        if not any(True for _ in optimizer_plans(self.ctx)) or gradients_are_seen(self.ctx):
            return False
        frozen: dict[ast.expr, list[str]] = {}
        for one in statements:
            tests = self._conditions(one)
            if tests is None:
                return False
            for call, condition in tests.items():
                frozen.setdefault(call, []).append(condition)
        for call, conditions in frozen.items():
            plan = self.ctx.plan.optimizers[call]
            joined = conditions[0] if len(conditions) == 1 else " or ".join(f"({c})" for c in conditions)
            group = Group(_label(plan), joined, {}, frozen=True)
            self.ctx.plan.optimizers[call] = replace(plan, groups=(group, *(plan.groups or (Group("trained", None),))))
        return True

    # --- what a statement freezes of each optimizer ---------------------------------------------------------------

    def _conditions(self, one: Freezing) -> dict[ast.expr, str] | None:
        """For each optimizer that has frozen parameters the condition on their names; None where that isn't sure."""
        scope = self.objects.scope(one.node)
        conditions: dict[ast.expr, str] = {}
        for call, plan in optimizer_plans(self.ctx):
            made = self._condition(one, scope, call, plan)
            if made is None:
                return None
            if made:
                conditions[call] = made
        return conditions

    def _condition(self, one: Freezing, scope: VariableScope, call: ast.Call, plan: OptimizerPlan) -> str | None:
        """The condition on the names of an optimizer's parameters, "" if none is frozen; None where it isn't sure."""
        updated = targets(plan.target) if plan.target else []
        if len(updated) != 1:
            return None
        inside = self._inside_class(one, scope, updated[0], call)
        if inside is not None:
            return _of_part(inside, one.condition)
        where = self.objects.scope(call)
        if where != scope or not self._always_runs(one.node) or one.node.lineno > call.lineno:
            return None
        module, target = ast.unparse(one.module), updated[0]
        if module == target:
            return one.condition or self._but_new_parts(one, target, scope)
        if is_part(module, target):
            return _of_part(module[len(target) :].removeprefix("."), one.condition)
        if is_part(target, module):
            return None
        return ""

    def _inside_class(self, one: Freezing, scope: VariableScope, target: str, call: ast.Call) -> str | None:
        """The part of the optimizer's module that its own constructor freezes: ``self.base`` in ``__init__``."""
        function = scope.function
        if function is None or function.owner is None or function.name != "__init__" or not function.owner.is_module:
            return None
        module = ast.unparse(one.module)
        cls = self._class_of(target, call)
        if cls is None or function.owner not in cls.ancestry() or not module.startswith("self."):
            return None
        return module.removeprefix("self.") if one.node in function.node.body else None

    def _class_of(self, target: str, call: ast.Call) -> ClassInfo | None:
        """The class of the module that is called so where an optimizer is made: ``Adam(params)`` may not name it."""
        scope = self.objects.scope(call)
        named = [n for n in symbols.walk(call) if isinstance(n, ast.expr) and ast.unparse(n) == target]
        named = named or [n for n in self.ctx.source.names.get(target, ()) if self.objects.scope(n) == scope]
        facts = [self.ctx.fact(node) for node in named]
        classes = {fact.cls.info if isinstance(fact, Instance) else None for fact in facts}
        return classes.pop() if len(classes) == 1 else None

    def may_hold(self, call: ast.Call, plan: OptimizerPlan, owner: ClassInfo) -> bool:
        """Whether the modules that an optimizer updates may be of a class, or have parts that are."""
        if plan.of_tensors:
            return False
        for target in targets(plan.target) if plan.target else [""]:
            cls = self._class_of(target, call) if target else None
            if cls is None and self._is_parameter(target, call):
                continue
            if cls is None or owner in (held := _parts(cls)) or None in held:
                return True
        return False

    def _is_parameter(self, target: str, call: ast.Call) -> bool:
        """Whether a variable holds nothing but a parameter that is made for it, and so none of a module's."""
        given = self.objects.assigned(target, self.objects.scope(call)) if target else []
        makers = [self.ctx.fact(one.func) if isinstance(one, ast.Call) else UNKNOWN for one in given]
        reads = self.ctx.source.names.get(target, ())
        alone = bool(given) and not any(is_held_too(self.ctx, one) for one in reads if isinstance(one.ctx, ast.Load))
        memory = [with_this_memory(one, self.ctx.fact) for one in given]
        if any(isinstance(one, ast.Attribute | ast.Subscript) or is_variable(self.ctx.fact(one)) for one in memory):
            return False  # an update writes into that, too
        return alone and all(isinstance(maker, Qual) and maker.name in _PARAMETERS for maker in makers)

    def _always_runs(self, node: ast.stmt) -> bool:
        """Whether nothing decides about a statement, or repeats it."""
        for place in ancestors(node, self.ctx.source.parents):
            if isinstance(place, ast.FunctionDef | ast.Module):
                return True
            if not (isinstance(place, ast.If) and "__name__" in ast.unparse(place.test)):
                return False
        return True

    def _but_new_parts(self, one: Freezing, target: str, scope: VariableScope) -> str | None:
        """Everything but the parts that are made anew below: ``model.fc = nn.Linear(8, 2)``."""
        parts = []
        for statement in self.objects.statements(scope):
            match statement:
                case ast.Assign(targets=[ast.Attribute() as new], value=ast.Call()) if (
                    ast.unparse(new.value) == target and statement.lineno > one.node.lineno
                ):
                    parts.append(f'not name.startswith("{new.attr}.")')
        return " and ".join(dict.fromkeys(parts)) or None


def optimizer_plans(ctx: Context) -> Iterator[tuple[ast.Call, OptimizerPlan]]:
    """The plans of optimizers, without those of schedulers."""
    for call, plan in ctx.plan.optimizers.items():
        fact = ctx.fact(call)
        if isinstance(call, ast.Call) and isinstance(fact, Object) and fact.kind == "optimizer":
            yield call, plan


def gradients_are_seen(ctx: Context) -> bool:
    """Whether the program does something with all gradients, where PyTorch has none for frozen parameters."""
    clips = names_with(Trait.CLIPS_NORM)
    return any(
        isinstance(n, ast.Attribute)
        and n.attr == "grad"
        or isinstance(n, ast.Call)
        and isinstance(fact := ctx.fact(n.func), Qual)
        and fact.name in clips
        for n in ctx.source.nodes
    )


def _parts(cls: ClassInfo) -> set[ClassInfo | None]:
    """The classes of a module and of all its parts; None among them where something unknown is one."""
    classes: set[ClassInfo | None] = set()
    waiting = [cls]
    while waiting:
        for info in waiting.pop().ancestry():
            if info in classes:
                continue
            classes.add(info)
            for fact in info.attributes.values():
                held = element(fact) if isinstance(fact, ListOf | Tuple) else fact
                if isinstance(held, Instance):
                    waiting.append(held.cls.info)
                elif isinstance(held, AnyModule) or held == UNKNOWN:
                    classes.add(None)
    return classes


def _of_part(part: str, condition: str | None) -> str | None:
    """The condition on names that says that a parameter is in a part of its module."""
    if condition is not None:
        return None
    names = _INDEX.sub(r".\1", part).removeprefix(".")
    if "[" in names:
        return None
    return f'{"name" if names == part else "torch_name"}.startswith("{names}.")'


def _label(plan: OptimizerPlan) -> str:
    taken = {group.label for group in plan.groups}
    return next(label for label in ("frozen", "frozen_parameters") if label not in taken)


def freezing(node: ast.AST) -> Freezing | None:
    """What a loop over named parameters freezes: ``if "head" not in name: p.requires_grad = False``."""
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=parameter)]),
            iter=ast.Call(func=ast.Attribute(attr="named_parameters", value=module), args=[], keywords=[]),
            body=[ast.If(test=test, body=[ast.stmt() as inner], orelse=[])],
            orelse=[],
        ) if _flag(inner, parameter) == "False":
            condition = test
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=parameter)]),
            iter=ast.Call(func=ast.Attribute(attr="named_parameters", value=module), args=[], keywords=[]),
            body=[ast.Assign(value=value) as inner],
            orelse=[],
        ) if _flag(inner, parameter):
            condition = ast.UnaryOp(ast.Not(), value)
        case _:
            return None
    try:
        return Freezing(node, module, name_condition(condition, name, parameter))
    except UnclearGroups:
        return None


def _flag(node: ast.stmt, parameter: str) -> str:
    """The text of what a statement gives ``parameter.requires_grad``; "" for others."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=ast.Name(id=owner))], value=value):
            return ast.unparse(value) if owner == parameter else ""
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="requires_grad_", value=ast.Name(id=owner)), args=[value])
        ):
            return ast.unparse(value) if owner == parameter else ""
    return ""


def is_left(module: str, plan: OptimizerPlan) -> bool:
    """Whether an optimizer of parts of a model gets no parameter of this module, which is another part."""
    if not plan.groups or not plan.groups[-1].frozen or not module.startswith(f"{plan.target}."):
        return False
    rest = module[len(plan.target) + 1 :] + "."
    given: list[str] = []
    for group in plan.groups[:-1]:
        parts = re.fullmatch(r'(name\.startswith\("([^"]+)"\)( or )?)+', group.condition or "")
        if parts is None:
            return False
        given += re.findall(r'"([^"]+)"', parts[0])
    return "[" not in rest and not any(one.startswith(rest) or rest.startswith(one) for one in given)
