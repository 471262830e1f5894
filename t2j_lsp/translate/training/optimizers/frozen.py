"""Frozen parameters: ``requires_grad = False`` goes where no optimizer has them; else the training code stays."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copied_modules import is_local_copy
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import Function, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Qual, Tensor
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.training.program.last_values import given_last
from t2j_lsp.translate.training.program.named_modules import base_of, is_part, targets
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .frozen_groups import Freezing, FrozenGroups, is_left, optimizer_plans
from .frozen_groups import freezing as freezing_by_name
from .other_modules import is_of_new_parts, other_names, parts_of
from .programs_without_training import trains_nothing
from .toggled import TOGGLED, Toggled, asking_for_gradients, switch
from .trainable_flags import TrainableFlags

NOT_UPDATED = "No optimizer of this file updates these parameters, and gradients are taken only for what one updates."
GROUPED = "These parameters are a group of the optimizer whose update is zero."
MASKED = (
    "Parameters are frozen by requires_grad, which an optimizer skips. In JAX pick the trained ones by a filter: "
    "nnx.Optimizer(..., wrt=trained) and nnx.DiffState(0, trained)."
)


class Frozen:
    """Finds the statements that freeze parameters."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.groups = FrozenGroups(context, objects)
        self._followed: set[tuple[str, VariableScope]] = set()
        """Modules whose other names are looked at."""

    def plan(self) -> str:
        """Put handlers on the statements that mean nothing in JAX; the reason why training stays if others do."""
        self.ctx.plan.switches.update(asking_for_gradients(self.ctx))
        all_frozen = [
            Freezing(n, module)
            for n in self.ctx.source.nodes
            if isinstance(n, ast.stmt) and (module := frozen_module(n)) is not None
        ]
        looped = {s for one in all_frozen if isinstance(one.node, ast.For) for s in one.node.body}
        all_frozen = [one for one in all_frozen if one.node not in looped]
        toggled = self._toggled(all_frozen)
        inside_toggled = {n for t in toggled for n in symbols.walk(t)}
        all_frozen = [one for one in all_frozen if one.node not in inside_toggled]
        some_frozen = [by_name for n in self.ctx.source.nodes if (by_name := freezing_by_name(n)) is not None]
        freezing = [one.node for one in (*all_frozen, *some_frozen)]
        harmless = [n for n in freezing if self._harmless(n)]
        named = [n for n in self.ctx.source.nodes if _frozen_as_made(n) is not None and self._harmless(n)]
        flags = {n: _flag_of_pairs(n) or n for n in freezing}
        inside = {i for n in [*flags.values(), *named, *toggled] for i in symbols.walk(n)} - set(freezing)
        others = [n for n in self.ctx.source.nodes if n not in inside]
        single = [n for n in others if (owner := _freezes_one(n)) is not None and self._may_be_trained(owner)]
        updated = [self._resolved(one) for one in (*all_frozen, *some_frozen) if one.node not in harmless]
        known = [one for one in updated if one is not None]
        surely = len(known) == len(updated) and not self._thawed(inside_toggled)
        kept = bool(single or updated and not (surely and self.groups.plan(known)))
        if kept and TrainableFlags(self.ctx, self.objects).plan():
            return ""
        grouped = {one.node for one in known}
        for node in toggled if not kept else []:
            self.ctx.plan.on_statement(node, lambda _, node=node: self._drop(node, TOGGLED))  # type: ignore[misc]
            self.ctx.plan.switches[node] = TOGGLED
        for node in freezing:
            if not kept:
                why = GROUPED if node in grouped else NOT_UPDATED
                flag = flags[node]
                self.ctx.plan.on_statement(flag, lambda _, flag=flag, why=why: self._drop(flag, why))  # type: ignore[misc]
            elif isinstance(node, ast.For) and flags[node] is node:
                self.ctx.plan.on_statement(node, lambda statements, node=node: self._mark(node))  # type: ignore[misc]
        return MASKED if kept else ""

    def _may_be_trained(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript) and isinstance(self.ctx.fact(node.value), Tensor):
            return False  # a part of a tensor is no parameter
        fact = self.ctx.fact(node)
        return fact == UNKNOWN or isinstance(fact, Tensor | UnknownParameter) or is_module(fact)

    def _mark(self, node: ast.stmt) -> None:
        self.ctx.report.gap(node, "Tensor.requires_grad", "refused", MASKED)

    def _toggled(self, all_frozen: Sequence[Freezing]) -> list[ast.stmt]:
        """The statements that switch modules off and on without consequence; none where something minds them."""
        toggled = Toggled(self.ctx, self.objects).switches()
        if not toggled:
            return []
        inside = {n for node in toggled for n in symbols.walk(node)}
        others = [one.node for one in all_frozen if one.node not in inside]
        if self._thawed(inside) or not all(map(self._harmless, others)) or self._flags_are_read():
            return []
        return toggled

    def _flags_are_read(self) -> bool:
        """Whether the program asks which parameters are trained."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Load):
                fact = self.ctx.fact(node.value)
                if not isinstance(fact, Tensor) or fact.variable:
                    return True
        return False

    def _thawed(self, but: Container[ast.AST] = ()) -> bool:
        """Whether the program makes frozen parameters ones that are trained again, ``but`` for some nodes."""
        for node in self.ctx.source.nodes:
            if node in but:
                continue
            match node:
                case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=owner)], value=ast.Constant(True)):
                    pass
                case ast.Call(func=ast.Attribute(attr="requires_grad_", value=owner), args=[] | [ast.Constant(True)]):
                    pass
                case _:
                    continue
            fact = self.ctx.fact(owner)
            if not isinstance(fact, Tensor) or fact.variable:
                return True
        return False

    def _drop(self, node: ast.stmt, why: str) -> None:
        self.ctx.report.note(node, "Tensor.requires_grad", "note", why)
        around = self.ctx.source.parents.get(node)
        whole = isinstance(around, ast.If) and around.body == [node] and not around.orelse
        if isinstance(around, ast.If) and whole and isinstance(around.test, ast.Name):
            self.ctx.edits.drop(*self.ctx.source.span(around))
            node = around
        self.ctx.edits.delete(node)
        self.ctx.report.count_converted()

    def _harmless(self, node: ast.AST) -> bool:
        self._followed.clear()
        module = frozen_module(node) or _frozen_as_made(node)
        if module is None or not isinstance(node, ast.stmt):
            return False
        if is_local_copy(self.ctx, self.objects.scope(node).function, module, node):
            return True
        if not is_module(self.ctx.fact(module)):
            return False
        return not self._updated(ast.unparse(module), self.objects.scope(node), node)

    def _updated(self, module: str, scope: VariableScope, node: ast.stmt, done: Collection[ast.Call] = ()) -> bool:
        """Whether an optimizer, none of ``done``, may update a module or a part; a part made below isn't frozen."""
        if not self.ctx.plan.optimizers:
            return not trains_nothing(self.ctx)
        owner = scope.function.owner if scope.function is not None else None
        if owner is not None and owner.is_module and module.partition(".")[0] == "self":
            return any(self.groups.may_hold(call, plan, owner) for call, plan in optimizer_plans(self.ctx))
        base = base_of(module)
        held = self._held(base, scope, node)
        if held is None:
            return True
        if held != [base]:
            return any(self._updated(f"{one}{module.removeprefix(base)}", scope, node) for one in held)
        frozen = self._frozen_on_demand(module, scope, node)
        if frozen is not None:
            return any(self._updated(name, self.objects.scope(place), place) for name, place in frozen)
        if (module, scope) not in self._followed:
            self._followed.add((module, scope))
            ended = [*done, *(call for call, _ in optimizer_plans(self.ctx) if self._is_done(call, scope, node))]
            for name, place in (
                *other_names(self.ctx, module, scope),
                *parts_of(self.ctx, self.objects, module, scope),
            ):
                if name is None or self._updated(name, self.objects.scope(place), place, ended):
                    return True
        alone = is_of_new_parts(self.ctx, self.objects, base, scope)
        for call, plan in optimizer_plans(self.ctx):
            if plan.of_tensors or is_left(module, plan) or call in done:
                continue
            if self._is_done(call, scope, node) or self._has_ended(call, plan, module, scope, node):
                continue
            for text in targets(plan.target) if plan.target else [""]:
                local_name = self.objects.seen_from(text, self.objects.scope(call), scope) if text else None
                if local_name is None and text and self.objects.scope(call) != scope and alone:
                    continue
                if local_name is None or local_name == module or is_part(module, local_name):
                    return True
                if is_part(local_name, module) and not self._made_below(local_name, scope, node):
                    return True
        return False

    def _resolved(self, one: Freezing) -> Freezing | None:
        """The statement with the module that it freezes by the name that others have for it; None for several."""
        base = base_of(ast.unparse(one.module))
        held = self._held(base, self.objects.scope(one.node), one.node)
        scope, module = self.objects.scope(one.node), ast.unparse(one.module)
        others = [*other_names(self.ctx, module, scope), *parts_of(self.ctx, self.objects, module, scope)]
        if held is None or len(held) != 1 or others:
            return None
        return (
            one
            if held == [base]
            else replace(one, module=ast.parse(f"{held[0]}{module.removeprefix(base)}", mode="eval").body)
        )

    def _held(self, name: str, scope: VariableScope, node: ast.stmt) -> list[str] | None:
        """What else the modules are called that a variable holds: the items of a loop, the part that it was given.

        None where that isn't known: ``for child in model.children()``.
        """
        for around in ancestors(node, self.ctx.source.parents):
            if isinstance(around, ast.For) and any(_is_named(n, name) for n in symbols.walk(around.target)):
                written = isinstance(around.target, ast.Name) and isinstance(around.iter, ast.List | ast.Tuple)
                return [ast.unparse(item) for item in around.iter.elts] if written else None  # type: ignore[attr-defined]
        parts = ast.Name | ast.Attribute | ast.Subscript
        values = [v for v in self.objects.assigned(name, scope) if ast.unparse(v) != name]
        if not any(isinstance(v, parts) for v in values):
            return [name]
        return [ast.unparse(v) for v in values] if all(isinstance(v, parts) for v in values) else None

    def _is_done(self, optimizer: ast.Call, scope: VariableScope, node: ast.stmt) -> bool:
        """Whether nothing reads an optimizer any more when its module is frozen: a teacher, trained and then kept.

        All reads have to stand above, in the same scope, and no loop may lead back to one; below, the name may be
        another optimizer's.
        """
        source = self.ctx.source
        match source.parents.get(optimizer):
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case _:
                return False
        around = [n for n in ancestors(node, source.parents) if isinstance(n, ast.stmt)]
        if any(isinstance(n, ast.For | ast.While | ast.AsyncFor) for n in around):
            return False
        stores = [n for n in source.names.get(name, ()) if not isinstance(n.ctx, ast.Load)]
        reads = [n for n in source.names.get(name, ()) if isinstance(n.ctx, ast.Load)]
        if not all(self.objects.scope(n) == scope for n in (*stores, *reads)):
            return False
        own = [n for n in reads if n.lineno < node.lineno or given_last(source, n) in (None, optimizer)]
        return all(n.lineno < node.lineno and self._passes(n) for n in own)

    def _has_ended(
        self, optimizer: ast.Call, plan: OptimizerPlan, module: str, scope: VariableScope, node: ast.stmt
    ) -> bool:
        """Whether the function that makes an optimizer for itself has ended when a module is frozen, which it trained.

        Further down it may be called for other modules: ``train(teacher); teacher.requires_grad_(False); train(net)``.
        """
        source, made = self.ctx.source, self.objects.scope(optimizer)
        function = made.function
        match source.parents.get(optimizer):
            case ast.Assign(targets=[ast.Name(id=name)]) if function is not None and function.owner is None:
                pass
            case _:
                return False
        inside = list(symbols.walk(function.node))
        reads = [n for n in inside if isinstance(n, ast.Name) and n.id == name]
        kept = not all(self.objects.scope(n) == made and self._passes(n) for n in reads)
        if kept or any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal) for n in inside):
            return False
        if any(isinstance(n, ast.For | ast.While | ast.AsyncFor) for n in ancestors(node, source.parents)):
            return False
        named = [n for n in source.nodes if isinstance(n, ast.Name) and n.id == function.name]
        calls = list(self.objects.calls(function))
        if len(named) != len(calls) or not all(self.objects.scope(call) == scope for call in calls):
            return False
        base = plan.target.partition(".")[0]
        for call in (one for one in calls if one.lineno > node.lineno):
            given = [ast.unparse(value) for p, value in bound_arguments(call, function) if p.arg == base]
            if len(given) != 1 or given[0] == module or is_part(given[0], module) or is_part(module, given[0]):
                return False
        return True

    def _passes(self, read: ast.Name) -> bool:
        """Whether an optimizer is asked for something, or given to a function or a scheduler: no object keeps it."""
        match self.ctx.source.parents.get(read):
            case ast.Attribute():
                return True
            case ast.Call(func=func):
                return isinstance(self.ctx.fact(func), Function | Qual)
        return isinstance(read.ctx, ast.Store)

    def _frozen_on_demand(self, module: str, scope: VariableScope, node: ast.stmt) -> list[tuple[str, ast.stmt]] | None:
        """Where a function that returns the module is asked to freeze it: ``teacher = make(frozen=True)``.

        None where that isn't how it is frozen.
        """
        function, source = scope.function, self.ctx.source
        around = source.parents.get(node)
        match around:
            case ast.If(test=ast.Name(id=asked), orelse=[]) if function is not None:
                pass
            case _:
                return None
        returned = [n.value for n in symbols.walk(function.node) if isinstance(n, ast.Return)]
        default = next((value for parameter, value in defaults(function) if parameter.arg == asked), None)
        if not isinstance(default, ast.Constant) or default.value:
            return None
        if not returned or not all(isinstance(r, ast.Name) and r.id == module for r in returned):
            return None
        frozen: list[tuple[str, ast.stmt]] = []
        for call in source.nodes:
            if isinstance(call, ast.Call) and called_function(self.ctx.fact(call.func)) is function:
                given = {p.arg: value for p, value in bound_arguments(call, function)}
                if asked not in given:
                    continue
                match source.parents.get(call):
                    case ast.Assign(targets=[ast.Name(id=name)]) as place:
                        frozen.append((name, place))
                    case _:
                        return None
        reads = [n for n in source.nodes if isinstance(n, ast.Name) and n.id == function.name]
        return frozen if all(isinstance(source.parents.get(n), ast.Call) for n in reads) else None

    def _made_below(self, text: str, scope: VariableScope, node: ast.stmt) -> bool:
        """Whether a statement behind ``node`` assigns a new module."""
        return any(
            isinstance(s, ast.Assign)
            and s.lineno > node.lineno
            and isinstance(s.value, ast.Call)
            and any(ast.unparse(t) == text for t in s.targets)
            for s in self.objects.statements(scope)
        )


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _freezes_one(node: ast.AST) -> ast.expr | None:
    """What is frozen in another way: ``layer.weight.requires_grad = False``."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=owner)], value=value):
            return None if isinstance(value, ast.Constant) and value.value is True else owner
        case ast.Call(func=ast.Attribute(attr="requires_grad_", value=owner), args=[ast.Constant(value=False)]):
            return owner
    return None


def _frozen_as_made(node: ast.AST) -> ast.expr | None:
    """The name of a module that is frozen as it gets it: ``teacher = copy.deepcopy(model).requires_grad_(False)``.

    The method gives the module itself in PyTorch, and goes in JAX.
    """
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as name], value=ast.Call() as call):
            while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                match call:
                    case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[ast.Constant(value=False)]):
                        return name
                call = call.func.value  # type: ignore[assignment]
    return None


def frozen_module(node: ast.AST) -> ast.expr | None:
    """The module whose parameters all get ``requires_grad = False`` by a statement."""
    if (setter := switch(node)) is not None:
        return None if setter.on else setter.module
    match node:
        case ast.For(
            target=ast.Name(id=name),
            iter=ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[], keywords=[]),
            body=[ast.Expr(value=ast.Call(func=ast.Attribute(attr="detach_", value=ast.Name(id=owner)), args=[]))],
            orelse=[],
        ) if name == owner:
            return module
        case ast.For() if (flag := _flag_of_pairs(node)) is not None:
            return _walked_by(node, _freezes_one(flag))
    return None


def _flag_of_pairs(node: ast.AST) -> ast.stmt | None:
    """What freezes in a loop over the parameters of several modules in pairs, which does more: MoCo's ``param_k``."""
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Tuple) or node.orelse:
        return None
    flags = [
        n for n in node.body if _walked_by(node, _freezes_one(n.value if isinstance(n, ast.Expr) else n)) is not None
    ]
    return flags[0] if len(flags) == 1 else None


def _walked_by(loop: ast.For, frozen: ast.expr | None) -> ast.expr | None:
    """The module whose parameters a variable of a loop over pairs is."""
    match loop:
        case ast.For(target=ast.Tuple(elts=targets), iter=ast.Call(func=ast.Name(id="zip"), args=walks, keywords=[])):
            for target, walk in zip(targets, walks, strict=False):
                match walk:
                    case ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[], keywords=[]):
                        if isinstance(frozen, ast.Name) and isinstance(target, ast.Name) and target.id == frozen.id:
                            return module
    return None
