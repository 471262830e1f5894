"""Plans for the optimizers and schedulers that a file makes: what they update, and how their learning rate changes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.call_sites import bound_arguments, defaults
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.factory import SPEED
from t2j_lsp.translate.rule.facts import OPTIMIZER_BASE, Fact, Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.optimizer_values import extra_defaults, transformation_of
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY, rule_of
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.training.program.objects import Objects

from .bare_tensors import BareTensors
from .first_counts import is_first_count
from .groups import BARE_TENSORS, UNKNOWN_PARAMETERS, updated
from .idle_groups import IdleGroups
from .learning_rates import LearningRates
from .lost_parameters import LostParameters
from .own_schedulers import OwnSchedulers
from .rate_forms import asks_all_alike

LISTS = ("SequentialLR", "ChainedScheduler")
CYCLES = ("OneCycleLR", "CyclicLR")
_CLIPS = (names_with(Trait.CLIPS_NORM), names_with(Trait.CLIPS_VALUE))
SEVERAL = "Several schedulers change the learning rate of one optimizer: join their schedules to one."
OWN_RATES = "Its optimizer's parameter groups have learning rates of their own."
NO_OPTIMIZER = "Can't tell which optimizer it changes."


class Optimizers:
    """Fills ``context.plan.optimizers`` with a plan for each constructor of ``torch.optim``."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.made = list(self._calls("optimizer"))
        self.schedulers = list(self._calls("scheduler"))
        self.own_schedulers = OwnSchedulers(context, objects)
        self.rates = LearningRates(context, objects)
        self.bare = BareTensors(context, objects)
        self._outers: dict[ast.Call, ast.Call | None] = {}
        self.alone: dict[ast.Call, list[ast.Name]] = {}
        """Where schedulers that are part of another one get a second name, under which they are the whole."""

    def _calls(self, kind: str) -> Iterator[ast.Call]:
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Call):
                fact, made = self.ctx.fact(node.func), self.ctx.fact(node)
                if isinstance(fact, Qual) and isinstance(made, Object) and made.kind == kind:
                    if fact.name.startswith("torch.optim.") and fact != Qual(OPTIMIZER_BASE):
                        yield node

    def plan(self) -> None:
        self._options_of_speed()
        plans: dict[ast.expr, OptimizerPlan] = {}
        for call in self.made:
            parameters = argument(call, 0, "params")
            if parameters is None:  # ``Adam(**options)``
                plans[call] = OptimizerPlan("", reason=UNKNOWN_PARAMETERS)
                continue
            target = updated(parameters, self.objects.scope(call), self.objects)
            made_by = self._passed_class(call)
            plans[call] = OptimizerPlan(target.target, reason=target.reason, groups=target.groups, made_by=made_by)
            if target.reason in (BARE_TENSORS, UNKNOWN_PARAMETERS):
                bare = self.bare.plan(call, parameters)
                if target.reason == BARE_TENSORS or bare.reason != BARE_TENSORS:
                    plans[call] = bare
                if bare.leaves and isinstance(parameters, ast.Name) and parameters.id not in bare.leaves:
                    self._drop_list(parameters)
            if target.target:
                text = self.ctx.source.segment(parameters)
                self.ctx.plan.on_expression(parameters, lambda renderer, text=text: Piece(text))  # type: ignore[misc]
                if target.groups:
                    read = {name for group in target.groups for name in group.reads}
                    IdleGroups(self.ctx, self.objects).drop(parameters, read)
                elif isinstance(parameters, ast.Name | ast.Attribute):
                    self._drop_list(parameters)
        self.ctx.plan.optimizers.update(plans)
        for call, name in self._changed():
            plan = self.ctx.plan.optimizers[call]
            if name not in plan.injected:
                self.ctx.plan.optimizers[call] = replace(plan, injected=(*plan.injected, name))
        for call in self._with_rates_apart():
            self.ctx.plan.optimizers[call] = replace(self.ctx.plan.optimizers[call], apart=True)
        for call in self.schedulers:
            self.ctx.plan.optimizers[call] = replace(self._schedule(call), begins=self._begins(call))
            self._write_alone(call)
        self.own_schedulers.plan(
            {call for node, call in self.own_schedulers.optimizers() if self._has_one_rate(node, call)}
        )

    def _has_one_rate(self, node: ast.expr, call: ast.Call) -> bool:
        """Whether an optimizer that a scheduler of the file is given has one rate, which nothing else schedules."""
        made = set(self.optimizers_of(node, call))
        plans = [self.ctx.plan.optimizers[one] for one in made]
        if not made or any(plan.reason or len(plan.groups) > 1 for plan in plans):
            return False
        others = [(argument(one, 0, "optimizer"), one) for one in self.schedulers]
        others += [other for other in self.own_schedulers.optimizers() if self._bound(other[1]) != self._bound(call)]
        return not any(made & set(self.optimizers_of(one, place)) for one, place in others)

    def _options_of_speed(self) -> None:
        """``"fused" in inspect.signature(torch.optim.AdamW).parameters``: optax has no such option."""
        for node in self.ctx.source.nodes:
            match node:
                case ast.Compare(
                    left=ast.Constant(value=str(option)),
                    ops=[ast.In()],
                    comparators=[
                        ast.Attribute(
                            attr="parameters", value=ast.Call(func=ast.Attribute(attr="signature"), args=[of])
                        )
                    ],
                ) if option in SPEED and transformation_of(self.ctx.fact(of)):
                    self.ctx.plan.on_expression(node, lambda renderer: self._no_option())

    def _no_option(self) -> Piece:
        self.ctx.report.count_converted()
        return Piece("False")

    def _passed_class(self, call: ast.Call) -> str:
        """The parameter that an optimizer's class is passed for; the class becomes optax's function at each call."""
        function = self.objects.scope(call).function
        if function is None or not isinstance(call.func, ast.Name):
            return ""
        name, source = call.func.id, self.ctx.source
        parameter = next((p for p in named_parameters(function.node) if p.arg == name), None)
        if parameter is None:
            return ""
        reads = [n for n in symbols.walk(function.node) if isinstance(n, ast.Name) and n.id == name]
        if not all(isinstance(p := source.parents.get(n), ast.Call) and p.func is n for n in reads):
            return name
        places = [bound_arguments(place, function) for place in self.objects.calls(function)]
        values = [v for given in (defaults(function), *places) for p, v in given if p is parameter]
        shown = self.ctx.fact(call.func)
        if any(self.ctx.fact(v) != shown for v in values) and not _is_given_a_rate_alone(call):
            return ""
        for value in values:
            self.ctx.plan.on_expression(value, lambda renderer, node=value: self._function(renderer, node, shown))  # type: ignore[misc]
        return name

    def _function(self, renderer: ExpressionRenderer, node: ast.expr, shown: Fact) -> Piece:
        """``optax.adam`` for ``torch.optim.Adam``; with its own defaults where the call is read as another class's."""
        fact = self.ctx.fact(node)
        library, _, function = transformation_of(fact).partition(".")
        self.ctx.report.count_converted()
        made = f"{renderer.need(library)}.{function}"
        extra = extra_defaults(fact) if fact != shown else ""
        return Piece(f"{renderer.need('functools')}.partial({made}, {extra})" if extra else made)

    def _drop_list(self, name: ast.Name | ast.Attribute) -> None:
        """``params = list(a.parameters()) + list(b.parameters())`` goes where only optimizers and clipping read it."""
        statements: Iterable[ast.stmt]
        named: list[ast.Name | ast.Attribute]
        if isinstance(name, ast.Name):
            statements = self.objects.statements(self.objects.scope(name))
            named = [n for n in self.ctx.source.nodes if isinstance(n, ast.Name) and n.id == name.id]
        else:
            statements = (n for n in self.ctx.source.nodes if isinstance(n, ast.Assign))
            named = list(self.ctx.source.attributes.get(name.attr, ())) if runs(self.ctx.source.tree) else []
        made = [s for s in statements if _assigns(s, ast.unparse(name))]
        reads = [n for n in named if isinstance(n.ctx, ast.Load)]
        used_up = LostParameters(self.ctx, self.objects).used_up
        if len(made) == 1 and reads and all(self._takes_parameters(n) for n in reads) and not used_up(made[0]):
            self.ctx.plan.on_statement(made[0], lambda statements: self.ctx.edits.delete(made[0]))

    def _takes_parameters(self, node: ast.expr) -> bool:
        """Whether a name is what an optimizer updates, or what gradients are clipped of."""
        call = self.ctx.source.parents.get(node)
        if not isinstance(call, ast.Call):
            return False
        fact = self.ctx.fact(call.func)
        clips = isinstance(fact, Qual) and any(fact.name in names for names in _CLIPS) and call.args[:1] == [node]
        return clips or call in self.made and argument(call, 0, "params") is node

    # --- hyperparameters that change ------------------------------------------------------------------------------

    def _changed(self) -> Iterator[tuple[ast.Call, str]]:
        """Each optimizer with the name of an option that the program changes while it runs."""
        for call in self.schedulers:
            if self.name(call) in LISTS:
                continue
            for made in self.optimizers_of(argument(call, 0, "optimizer"), call):
                yield made, "lr"
                if self.name(call) in CYCLES and not self.still(call):
                    yield made, self._momentum(made)
        for owner, call in self.own_schedulers.optimizers():
            yield from ((made, "lr") for made in self.optimizers_of(owner, call))
        for made in () if runs(self.ctx.source.tree) else filter(self._is_returned, self.made):
            yield made, "lr"  # another file may set the rate
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "param_groups":
                for made in self.optimizers_of(node.value, node):
                    yield made, "lr"
            elif isinstance(node, ast.Attribute) and node.attr == "load_state_dict" and self._is_optimizer(node.value):
                for made in self.optimizers_of(node.value, node):
                    if not any("lr" in group.options for group in self.ctx.plan.optimizers[made].groups):
                        yield made, "lr"  # the rate is loaded, too

    def _is_returned(self, call: ast.Call) -> bool:
        """Whether a function hands an optimizer out to its caller."""
        scope = self.objects.scope(call)
        if scope.function is None:
            return False
        returned = [n.value for n in symbols.walk(scope.function.node) if isinstance(n, ast.Return)]
        values = [v for one in returned for v in (one.elts if isinstance(one, ast.Tuple) else [one]) if v is not None]
        return any(call in (self.objects.constructors(value, scope) or ()) for value in values)

    def _with_rates_apart(self) -> Iterator[ast.Call]:
        """The optimizers of several groups whose learning rates the program sets or reads one by one."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "param_groups":
                alike = asks_all_alike(node, self.ctx.source.parents)
                for made in self.optimizers_of(node.value, node):
                    if len(self.ctx.plan.optimizers[made].groups) > 1 and (self._has_rates(made) or not alike):
                        yield made

    def _has_rates(self, made: ast.Call) -> bool:
        """Whether parameter groups of an optimizer have learning rates of their own."""
        groups = self.ctx.plan.optimizers[made].groups
        return len(groups) > 1 and any("lr" in group.options for group in groups)

    def _is_optimizer(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, Object) and fact.kind == "optimizer"

    def optimizers_of(self, node: ast.expr | None, place: ast.AST) -> list[ast.Call]:
        """The constructors an optimizer may come from; all of the file's where it can't be followed."""
        constructors = self.objects.constructors(node, self.objects.scope(place)) if node is not None else None
        known = [c for c in constructors if c in self.ctx.plan.optimizers] if constructors is not None else None
        return known if known is not None else self.made

    def name(self, call: ast.Call) -> str:
        fact = self.ctx.fact(call.func)
        return fact.name.rpartition(".")[2] if isinstance(fact, Qual) else ""

    def still(self, call: ast.Call) -> bool:
        """Whether a cycle leaves the momentum alone."""
        value = next((k.value for k in call.keywords if k.arg == "cycle_momentum"), None)
        return isinstance(value, ast.Constant) and value.value is False

    def _momentum(self, made: ast.Call) -> str:
        rule = rule_of(self.ctx.fact(made.func))
        names = {p.name for s in rule.signatures for p in s.parameters or ()} if rule is not None else set()
        return "betas" if "betas" in names else "momentum" if "momentum" in names else ""

    # --- schedulers -----------------------------------------------------------------------------------------------

    def _schedule(self, call: ast.Call) -> OptimizerPlan:
        name = self.name(call)
        owner = argument(call, 0, "optimizer") if name != "ChainedScheduler" else self._chained_optimizer(call)
        outer = self._outer(call)
        if owner is None:
            return OptimizerPlan(reason=NO_OPTIMIZER)
        made = self.objects.constructors(owner, self.objects.scope(call))
        if made is None or any(m not in self.ctx.plan.optimizers for m in made):
            return OptimizerPlan(reason=NO_OPTIMIZER)
        if any(g.options.keys() & {"momentum", "betas"} for m in made for g in self.ctx.plan.optimizers[m].groups):
            return OptimizerPlan(reason=OWN_RATES)
        if any(map(self._has_rates, made)):
            alone = outer is None and name not in LISTS and not self._competes(call, made)
            return OptimizerPlan(reason=OWN_RATES, rates=self.rates.of_groups(made, call) if alone else ())
        if outer is None and self._competes(call, made):
            return OptimizerPlan(reason=SEVERAL)
        if isinstance(owner, ast.NamedExpr):
            owner = owner.target  # a name from here on
        if outer is not None and self.name(outer) == "ChainedScheduler":
            return OptimizerPlan(rate="1.0", alone=True)
        cycled = {self._momentum(m) for m in made}
        rate = self.rates.of(made, call)
        return OptimizerPlan(
            target=ast.unparse(owner),
            rate=rate or self.rates.held(owner, made),
            holds_rate=not rate or self.rates.changes_later(rate, call),
            cycled=cycled.pop() if len(cycled) == 1 else "",
            alone=outer is not None,
        )

    def _begins(self, call: ast.Call) -> bool:
        """Whether a scheduler counts from the first step on, as far as its ``last_epoch`` tells."""
        fact, scope = self.ctx.fact(call.func), self.objects.scope(call).function
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        names = [p.name for p in rule.signatures[0].parameters or ()] if rule is not None else []
        index = names.index("last_epoch") if "last_epoch" in names else len(names)
        given = argument(call, index, "last_epoch")
        calls = list(self.objects.calls(scope)) if scope is not None else []
        return given is None or is_first_count(given, scope, calls)

    def _chained_optimizer(self, call: ast.Call) -> ast.expr | None:
        listed = argument(call, 0, "schedulers")
        items = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
        for item in items:
            made = item if isinstance(item, ast.Call) else self._value(item, call)
            if isinstance(made, ast.Call) and made in self.schedulers:
                return argument(made, 0, "optimizer")
        return None

    def _value(self, node: ast.expr, place: ast.AST) -> ast.expr | None:
        values = [v for v, _ in self.objects.sources(node, self.objects.scope(place))]
        return values[0] if len(values) == 1 else None

    def _outer(self, call: ast.Call) -> ast.Call | None:
        """The scheduler that this one is only a part of."""
        if call not in self._outers:
            self._outers[call] = self._find_outer(call)
        return self._outers[call]

    def _find_outer(self, call: ast.Call) -> ast.Call | None:
        parent = self.ctx.source.parents.get(call)
        if isinstance(parent, ast.List | ast.Tuple | ast.keyword):
            parent = self.ctx.source.parents.get(parent)
            if isinstance(parent, ast.keyword):
                parent = self.ctx.source.parents.get(parent)
            return parent if isinstance(parent, ast.Call) and parent in self.schedulers else None
        if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
            return None
        scope = self.objects.scope(call)
        outers, alone = set[ast.Call](), list[ast.Name]()
        for node in symbols.walk(scope.node or self.ctx.source.tree):
            if isinstance(node, ast.Name) and node.id == parent.targets[0].id and isinstance(node.ctx, ast.Load):
                place: ast.AST | None = self.ctx.source.parents.get(node)
                if isinstance(place, ast.Assign) and isinstance(place.targets[0], ast.Name):
                    alone.append(node)
                    continue
                while isinstance(place, ast.List | ast.Tuple | ast.keyword):
                    place = self.ctx.source.parents.get(place)
                if not (isinstance(place, ast.Call) and place in self.schedulers and self.name(place) in LISTS):
                    return None
                outers.add(place)
        outer = outers.pop() if len(outers) == 1 else None
        if outer is not None and alone:
            if self.name(outer) != "SequentialLR" or self.name(call) in CYCLES:
                return None
            self.alone[call] = alone
        return outer

    def _write_alone(self, call: ast.Call) -> None:
        """Where a branch has a part of a joined scheduler alone, ``scheduler = main``, that is one of its schedule."""
        plan = self.ctx.plan.optimizers[call]
        for name in self.alone.get(call, ()) if not plan.reason else ():
            self.ctx.plan.on_expression(name, partial(_scheduler, plan.target, name.id))

    def _competes(self, call: ast.Call, made: list[ast.Call]) -> bool:
        """Whether another scheduler, under another name, changes the same optimizer."""
        for other in self.schedulers:
            if other is call or self._outer(other) is not None or self._bound(other) == self._bound(call):
                continue
            node = argument(other, 0, "optimizer")
            if node is not None and set(self.optimizers_of(node, other)) & set(made):
                return True
        return False

    def _bound(self, call: ast.Call) -> str:
        parent = self.ctx.source.parents.get(call)
        return ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else f"line {call.lineno}"


def _is_given_a_rate_alone(call: ast.Call) -> bool:
    """Whether an optimizer is given its parameters and a rate, which all classes of them take."""
    names = {"params", "lr"}
    return len(call.args) + len(call.keywords) == 2 and all(k.arg in names for k in call.keywords)


def _scheduler(optimizer: str, schedule: str, renderer: ExpressionRenderer) -> Piece:
    return Piece(f"{renderer.need('LRScheduler')}({optimizer}, {schedule})")


def _assigns(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return ast.unparse(target) == name
    return False
