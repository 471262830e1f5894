"""What is left of training code around the updates: learning rates set by hand, gradient scalers, autocast, states."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.forward_hooks import HOOKS
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.expressions.paired_parameters import paired_modules
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Fact, ListOf, Object, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.rule.pieces import Piece, bracket
from t2j_lsp.translate.training.data.batch_loops import batch_targets
from t2j_lsp.translate.training.data.batches import Batches
from t2j_lsp.translate.training.optimizers.group_rates import NO_GROUPS, GroupRates
from t2j_lsp.translate.training.optimizers.made_optimizers import Optimizers
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.dict_order import DictOrder, is_dict
from t2j_lsp.translate.training.program.objects import Objects
from t2j_lsp.translate.training.program.once import KnownPrint, holds_arrays_alone
from t2j_lsp.translate.training.program.passed import Input
from t2j_lsp.translate.training.program.static_values import names_loss
from t2j_lsp.translate.training.program.step_calls import CLOSURE

from .bound_calls import BoundCalls
from .idle_modes import IdleModes
from .method_calls import MethodCalls
from .passes import Passes
from .region import AUTOCAST
from .repeated_calls import RepeatedCalls, called_module
from .training_steps import Steps

SAVED = "The state is optax's: an optimizer of PyTorch can't load it, and its states can't be loaded here."
COUNTED = (
    "The schedule goes on from the count that is loaded, as it is made here: PyTorch's state brings back its settings "
    "as well (T_max, milestones, the first rate)."
)
NO_STEP = "The update is made by optimizer.update(model, grads), with the gradients of nnx.grad."
SCALER = "Gradient scaling guards float16; the loop computes in float32 and goes without it."

_UPDATES = ("step", "zero_grad", "add_param_group")
_TORCH_ONLY = ("param_groups", "state", "defaults")


class OutsideUpdates:
    """Puts handlers on the calls and statements that no update has taken."""

    def __init__(
        self, context: Context, objects: Objects, optimizers: Optimizers, steps: Steps, batches: Batches
    ) -> None:
        self.ctx = context
        self.objects = objects
        self.optimizers = optimizers
        self.steps = steps
        self.batches = batches
        self.rates = GroupRates(context, optimizers)
        self.allocations = Allocations(objects)
        self.repeated = RepeatedCalls(context.inference, objects, self.allocations, steps.hosts, steps.used)
        self.methods = MethodCalls(context, objects, steps.jittable)
        self.bound = BoundCalls.of(context, objects)
        self.compiled: dict[ast.Call, Callable[[], None]] = {}
        """Calls of modules that go through a compiled function, and what has each do so by itself."""
        self.passed: set[ast.AST] = set()
        """What is computed in one function with such a call."""

    def plan(self) -> None:
        left = {n for s in self.steps.refused for n in symbols.walk(s)}
        used = {n for s in self.steps.used for n in symbols.walk(s)}
        for node in self.ctx.source.nodes:
            if node in left:
                continue
            if isinstance(node, ast.stmt):
                (self._inside if node in used else self._statement)(node)
            elif isinstance(node, ast.Call):
                self.rates.count(node)
                self._call(node, node in used)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                self.rates.read(node)
            elif isinstance(node, ast.ListComp) and not self.steps.refused:
                self.rates.listed(node)
            elif isinstance(node, ast.Attribute) and node not in used:
                self._attribute(node)
        self._compile()

    def _compile(self) -> None:
        """Have the calls that were found go through compiled functions."""
        outside = {n for s in self.steps.used for n in symbols.walk(s)}
        passes = Passes(self.ctx, self.objects, self.steps, self.compiled.keys() - outside - self.steps.uncompiled)
        taken = passes.plan()
        for call, handle in self.compiled.items():
            if call not in taken:
                handle()
        self.passed = passes.compiled
        if self.steps.converted and not self.steps.refused:
            IdleModes(self.ctx, self.bound, {*self.steps.used, *self.compiled} - self.steps.uncompiled).plan()

    # --- statements -----------------------------------------------------------------------------------------------

    def _rate(self, node: ast.stmt) -> bool:
        """A new learning rate, also one that is set between the loss and the update; whether it is one."""
        match node:
            case ast.For():
                paired = paired_modules(node) if self.steps.converted else []
                modules = [[module] for module in paired if module is not None]
                if modules and self.allocations.are_trees(modules, ""):
                    bound = self.bound.keep_structure(node, modules)
                    self.ctx.plan.tree_averages[node] = "polyak_step" if bound else "polyak_update"
                self.rates.loop(node, leave=bool(self.steps.refused))
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                return self.rates.write(node, target, node.value)
        return False

    def _statement(self, node: ast.stmt) -> None:
        if node in self.ctx.plan.statement_handlers or self._rate(node):
            return
        match node:
            case ast.With() if self.steps.reader.is_open(node) and self._half(node):
                self.ctx.plan.on_statement(node, lambda statements: self._open(node, statements))
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                self._write(node, target)
            case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name(id="self")) as target]):
                self._assign(node, target)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_grad") as func)):
                if self._zeroes(func.value) and self.steps.converted and not self.steps.refused:
                    self.ctx.plan.on_statement(node, lambda statements: self.ctx.edits.delete(node))

    def _inside(self, node: ast.stmt) -> None:
        """A statement that an update has taken, or that stands in one: ``if bad: optimizer.zero_grad(); continue``."""
        if self._rate(node) or node in self.steps.used:
            return
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_grad", value=owner))):
                around = [
                    self.steps.fresh.get(a, set())
                    for a in ancestors(node, self.ctx.source.parents)
                    if isinstance(a, ast.stmt)
                ]
                if any(ast.unparse(owner) in updated for updated in around):
                    self.ctx.plan.on_statement(node, lambda statements: self.ctx.edits.delete(node))

    def _zeroes(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return is_module(fact) or isinstance(fact, Object) and fact.kind == "optimizer"

    def _half(self, node: ast.With) -> bool:
        """Whether a ``with`` is about mixed precision."""
        return any(
            self.steps.reader.is_autocast(i.context_expr) or isinstance(i.context_expr, ast.Name) for i in node.items
        )

    def _open(self, node: ast.With, statements: StatementRewriter) -> None:
        self.ctx.report.note(node.items[0].context_expr, "torch.autocast", "note", AUTOCAST)
        statements.unwrap(node, node.body)
        self.ctx.report.count_converted()

    def _assign(self, node: ast.Assign, target: ast.Name | ast.Attribute) -> None:
        """``scaler = GradScaler()`` and ``ctx = autocast(...)`` go with what they were for, also in attributes."""
        fact = self.ctx.fact(node.value)
        scaler = isinstance(fact, Object) and fact.kind == "scaler"
        context = self.steps.reader.open_context(node.value) and any(
            self.steps.reader.is_autocast(n) for n in symbols.walk(node.value)
        )
        if not (scaler or context) or self.steps.refused:
            return
        reads = [n for n in self.ctx.source.nodes if _is_of_name(n, target) and n is not target]
        named = isinstance(target, ast.Attribute) and any(
            isinstance(n, ast.Constant) and n.value == target.attr for n in self.ctx.source.nodes
        )
        if scaler and not all(self._scaler_use(n) for n in reads) or named:
            return
        if context and not all(isinstance(self.ctx.source.parents.get(n), ast.withitem) for n in reads):
            return

        def handler(statements: StatementRewriter) -> None:
            if scaler:
                self.ctx.report.note(node.value, "torch.amp.GradScaler", "note", SCALER)
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()

        self.ctx.plan.on_statement(node, handler)

    def _scaler_use(self, node: ast.AST) -> bool:
        """Whether a scaler is used only in statements that an update has taken."""
        return nearest(ast.stmt, node, self.ctx.source.parents) in self.steps.used

    # --- what else is read of an optimizer -----------------------------------------------------------------------

    def _write(self, node: ast.stmt, target: ast.Subscript) -> None:
        """What is written into an optimizer, and is no rate."""
        refused = [n for n in symbols.walk(target) if isinstance(n, ast.Attribute) and self._is_torch_only(n)]
        if refused:
            self.ctx.plan.on_statement(node, lambda statements: self._refuse(refused[0]))

    def _attribute(self, node: ast.Attribute) -> None:
        """What a PyTorch optimizer has and an nnx.Optimizer hasn't is a gap wherever no handler takes it."""
        if node in self.ctx.plan.expression_handlers:
            return
        if isinstance(node.ctx, ast.Load) and self._is_torch_only(node):
            self.ctx.plan.on_expression(node, lambda renderer: self._refused(node))

    def _is_torch_only(self, node: ast.Attribute) -> bool:
        fact = self.ctx.fact(node.value)
        return node.attr in _TORCH_ONLY and isinstance(fact, Object) and fact.kind == "optimizer"

    def _refuse(self, node: ast.Attribute) -> None:
        self.ctx.report.gap(node, f"torch.optim.Optimizer.{node.attr}", "refused", NO_GROUPS)

    def _refused(self, node: ast.Attribute) -> Piece:
        self._refuse(node)
        return Piece(self.ctx.source.segment(node))

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, used: bool) -> None:
        if node in self.ctx.plan.expression_handlers or not isinstance(node.func, ast.Attribute | ast.Name):
            return
        if isinstance(node.func, ast.Attribute):
            owner = self.ctx.fact(node.func.value)
            if isinstance(owner, Object) and owner.kind in ("optimizer", "scheduler", "scaler") and not used:
                self._object_call(node, node.func, owner)
                return
            if isinstance(owner, Object) and owner.kind == "optimizer" and node.func.attr in _UPDATES:
                self._object_call(node, node.func, owner)  # what an update takes is never written
                return
        method = self.methods.called(node) if not used else None
        if method is not None and self._repeated(node):
            self.compiled[node] = partial(self.methods.plan, node, method)
        if not is_module(self.ctx.fact(called_module(self.ctx.inference, node))):
            return
        if not used and self._repeated(node) or self._in_episode(node):
            self._forward(node)

    def _repeated(self, node: ast.Call) -> bool:
        """Whether a call is worth a compilation: it stands in a loop that trains, or that acts inside of one."""
        return self._over_batches(node) or self.repeated.is_repeated(node) or self.repeated.is_acting(node)

    def _object_call(self, node: ast.Call, func: ast.Attribute, owner: Object) -> None:
        """Calls of optimizers and schedulers that have no counterpart are marked."""
        if owner.kind == "scheduler" and func.attr in ("step", "get_last_lr", "state_dict", "load_state_dict"):
            if func.attr == "load_state_dict" and len(node.args) == 1 and not owner.name.endswith("ReduceLROnPlateau"):
                self._load_schedule(node, func)
            return
        if owner.kind == "optimizer" and self._state(node, func):
            return
        reason = NO_STEP if func.attr in ("step", "zero_grad") else NO_GROUPS
        if owner.kind == "optimizer" and func.attr == "step" and (node.args or node.keywords):
            reason = CLOSURE
        if owner.kind == "scaler":
            reason = SCALER
        if owner.kind == "scheduler":
            reason = "LRScheduler keeps its count in last_epoch, and nothing else that changes."
        name = f"torch.optim.{owner.kind}.{func.attr}"

        def handler(renderer: ExpressionRenderer) -> Piece:
            self.ctx.report.gap(node, name, "refused", reason)
            return Piece(self.ctx.source.segment(node))

        self.ctx.plan.on_expression(node, handler)

    def _load_schedule(self, node: ast.Call, func: ast.Attribute) -> None:
        """A schedule goes on from a count; in PyTorch's state are its settings, too."""

        def handler(renderer: ExpressionRenderer) -> Piece:
            self.ctx.report.count_converted()
            self.ctx.report.note(node, f"torch.optim.scheduler.{func.attr}", "note", COUNTED)
            return Piece(f"{renderer.render(func).text}({renderer.argument(node.args[0]).text})")

        self.ctx.plan.on_expression(node, handler)

    def _state(self, node: ast.Call, func: ast.Attribute) -> bool:
        """An optimizer's state is a tree of arrays, which only the same optimizer of optax can load."""
        match func.attr, node.args, node.keywords:
            case "state_dict", [], []:
                form = "{nnx}.to_pure_dict({nnx}.state({owner}))"
            case "load_state_dict", [_], []:
                form = "{nnx}.update({owner}, {state})"
            case _:
                return False

        def handler(renderer: ExpressionRenderer) -> Piece:
            self.ctx.report.count_converted()
            self.ctx.report.note(node, f"torch.optim.Optimizer.{func.attr}", "note", SAVED)
            given = {"state": renderer.argument(node.args[0]).text} if node.args else {}
            return Piece(form.format(nnx=renderer.need("nnx"), owner=renderer.render(func.value).text, **given))

        self.ctx.plan.on_expression(node, handler)
        return True

    # --- forward passes outside the updates -----------------------------------------------------------------------

    def _forward(self, node: ast.Call) -> None:
        """``model(x)`` is compiled in a loop over batches, and in a step that isn't: there each operation is traced."""
        module = called_module(self.ctx.inference, node)
        fact = self.ctx.fact(module)
        if is_loss(fact) or not node.args or node.keywords:
            return
        facts = [self.ctx.fact(a) for a in node.args]
        if not all(isinstance(f, (Tensor, ListOf | Tuple)) for f in facts):
            return
        if self._defined_in_module(node) and node not in self.steps.uncompiled or names_loss(module):
            return
        if not self.ctx.source.words.isdisjoint(HOOKS):
            return  # a hook runs with each call only in Python
        problems = [*filter(None, map(self.steps.jittable.module_problem, self.allocations.facts(module)))]
        if not all(isinstance(problem, KnownPrint) and node not in self.steps.uncompiled for problem in problems):
            return
        if is_dict(self.ctx.fact(node)) and DictOrder(self.ctx).is_read:
            return  # jit would give it in the order of its keys
        if _has_objects(self.ctx.fact(node)):
            return

        called = self.allocations.helper("forward", ast.unparse(module))
        if called == "forward" and not self.steps.uncompiled and self._is_bound(module):
            called = "bound_forward"

        def handler(renderer: ExpressionRenderer) -> Piece:
            held, *given = (bracket(renderer.argument(a), 1) for a in (module, *node.args))
            first = f"{held})(" if called == "bound_forward" else held + ", " * bool(given)
            self.ctx.report.count_converted()
            text = f"{renderer.need(called)}({first}{', '.join(given)})"
            return Piece(f"{renderer.need('printed')}({text})" if problems else text)

        self.compiled[node] = partial(self.ctx.plan.on_expression, node, handler)

    def _is_bound(self, module: ast.expr) -> bool:
        """Whether a call may bind its module."""
        place, passed = (
            nearest(ast.stmt, module, self.ctx.source.parents),
            Input("", ast.unparse(module), "module", [module]),
        )
        return place is not None and self.bound.keep_objects(place, self.objects.scope(place), [passed])

    def _in_episode(self, node: ast.Call) -> bool:
        """Whether it stands in a step that isn't compiled, and nothing else than arrays changes from call to call."""
        given = [self.ctx.fact(a) for a in node.args]
        return (
            node in self.steps.uncompiled
            and all(isinstance(fact, Tensor) or fact == Scalar("none") for fact in given)
            and holds_arrays_alone(self.ctx.fact(called_module(self.ctx.inference, node)))
        )

    def _defined_in_module(self, node: ast.AST) -> bool:
        owner = self.objects.owner(self.objects.scope(node))
        return owner is not None and owner.is_module

    def _over_batches(self, node: ast.AST) -> bool:
        """Whether the nearest loop in the function takes batches from a loader, or makes updates itself."""
        place = self.ctx.source.parents.get(node)
        while place is not None and not isinstance(place, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.ListComp):
            if isinstance(place, ast.For | ast.While):
                return (
                    any(n in self.steps.used for n in ast.walk(place))
                    or isinstance(place, ast.For)
                    and (
                        self.batches.iterates_batches(place)
                        or any(t in self.ctx.inference.assumed for t in batch_targets(place))
                    )
                )
            place = self.ctx.source.parents.get(place)
        return False


def _has_objects(fact: Fact) -> bool:
    """Whether a value has distributions or words among its parts, which compiled code doesn't give."""
    match fact:
        case Tuple(items=items):
            return any(map(_has_objects, items))
        case ListOf(item=item):
            return _has_objects(item)
    return isinstance(fact, Object) or isinstance(fact, Scalar) and fact.kind == "str"


def _is_of_name(node: ast.AST, target: ast.Name | ast.Attribute) -> bool:
    """Whether a variable or an attribute is called as a target is, whosever it is."""
    if isinstance(target, ast.Attribute):
        return isinstance(node, ast.Attribute) and node.attr == target.attr
    return isinstance(node, ast.Name) and node.id == target.id
