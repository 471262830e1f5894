"""Schedulers that go on with every update of their optimizer: optax counts those itself.

``scheduler.step()`` behind each ``optimizer.step()`` says no more than that the learning rate is a function of the
number of updates. The schedule goes into the transformation, as people write it in optax, and what is asked of the
scheduler is asked of the schedule: ``scheduler(optimizer.step.item())``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import ATOM, Piece
from t2j_lsp.translate.rule.traced_schedules import traced_body
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .made_optimizers import CYCLES, Optimizers

Variable = tuple[str, VariableScope]
DEPTH = 3
"""Calls through which an update is followed to the step of its scheduler."""
_MOMENTUM = {"betas": "beta1", "momentum": "momentum"}
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)


_NOT_ONCE = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _UsedOtherwise(Exception):
    """Something else is done with an optimizer or a scheduler than to step it."""


@dataclass
class _BothUses:
    """Where the optimizer and its scheduler are used, under all names by which functions get them."""

    updates: list[ast.stmt] = field(default_factory=list)
    steps: list[ast.stmt] = field(default_factory=list)
    reads: list[ast.Call] = field(default_factory=list)
    """Where the scheduler is asked for the rate."""
    optimizers: list[Variable] = field(default_factory=list)
    """What the optimizer is called."""

    def in_statement(self, statement: ast.stmt) -> bool:
        inside = set(symbols.walk(statement))
        return any(n in inside for n in (*self.updates, *self.steps, *self.reads))


class CountedSchedules:
    """Finds them, and has their optimizers made of the schedules, behind these."""

    def __init__(self, context: Context, objects: Objects, optimizers: Optimizers, used: set[ast.AST]) -> None:
        self.ctx = context
        self.objects = objects
        self.optimizers = optimizers
        self.used = used
        """What is in the statements that moved into train steps."""

    def plan(self) -> None:
        for call in self.optimizers.schedulers:
            made = self._optimizer(call)
            if made is None:
                continue
            scheduler, optimizer = self.ctx.source.parents[call], self.ctx.source.parents[made]
            assert isinstance(scheduler, ast.Assign) and isinstance(optimizer, ast.Assign)
            try:
                uses = self._uses(scheduler, optimizer, call)
            except _UsedOtherwise:
                continue
            if self._goes_along(uses) and (owners := self._owners(uses)) is not None:
                self._take(scheduler, optimizer, uses.steps)
                for read, owner in owners.items():
                    self._read(read, owner)

    # --- which scheduler, of which optimizer ---------------------------------------------------------------------

    def _optimizer(self, call: ast.Call) -> ast.Call | None:
        """The constructor of the optimizer that a scheduler is made for, in front of it in the same block."""
        plan = self.ctx.plan.optimizers[call]
        if plan.reason or plan.alone or plan.rates or not plan.begins or not self._is_traced(call):
            return None
        node = argument(call, 0, "optimizer")
        made = self.objects.constructors(node, self.objects.scope(call)) if isinstance(node, ast.Name) else None
        if made is None or len(made) != 1 or not self._takes_schedule(made[0]):
            return None
        if not self.optimizers.rates.of(made, call) or plan.holds_rate:
            return None
        moves = self.optimizers.name(call) in CYCLES and not self.optimizers.still(call)
        if moves and plan.cycled not in _MOMENTUM:
            return None
        return made[0] if self._may_move(call, made[0]) else None

    def _is_traced(self, call: ast.Call) -> bool:
        """Whether the schedule is a function of a count under jit."""
        fact = self.ctx.fact(call.func)
        if not isinstance(fact, Qual) or any(k.arg in (None, "scale_fn", "last_epoch") for k in call.keywords):
            return False
        function = argument(call, 1, "lr_lambda")
        if fact.name in names_with(Trait.SCHEDULE_OF_FUNCTION):
            return isinstance(function, ast.Lambda) and traced_body(function) is not None
        return fact.name in names_with(Trait.TRACED_SCHEDULE)

    def _takes_schedule(self, made: ast.Call) -> bool:
        fact, plan = self.ctx.fact(made.func), self.ctx.plan.optimizers.get(made)
        if plan is None or plan.reason or not plan.target or plan.apart or plan.made_by or plan.leaves:
            return False
        if any({"lr", "momentum", "betas"} & group.options.keys() for group in plan.groups):
            return False
        return isinstance(fact, Qual) and fact.name in names_with(Trait.TAKES_SCHEDULE)

    def _may_move(self, call: ast.Call, made: ast.Call) -> bool:
        """Whether an optimizer may as well be made behind its scheduler: what it is made of is the same there."""
        source = self.ctx.source
        first, last = (self._assignment(source.parents.get(one)) for one in (made, call))
        block = (source.block_of(last) or []) if last is not None else []
        if first is None or last is None or first not in block[: block.index(last)]:
            return False
        named = {n.id for n in symbols.walk(first) if isinstance(n, ast.Name)}
        optimizer = ast.unparse(first.targets[0])
        between = [n for s in block[block.index(first) + 1 : block.index(last)] for n in symbols.walk(s)]
        written = [n for n in between if not isinstance(getattr(n, "ctx", ast.Load()), ast.Load)]
        if any(isinstance(n, ast.Attribute) or isinstance(n, ast.Name) and n.id in named for n in written):
            return False
        return not any(isinstance(n, ast.Name) and n.id == optimizer for n in between)

    def _assignment(self, node: ast.AST | None) -> ast.Assign | None:
        """A statement that gives a variable its value, on lines of its own."""
        match node:
            case ast.Assign(targets=[ast.Name()]) if self.ctx.source.statement(node).alone:
                return node
        return None

    # --- how they are used ----------------------------------------------------------------------------------------

    def _uses(self, scheduler: ast.Assign, optimizer: ast.Assign, call: ast.Call) -> _BothUses:
        """All that a program does with both. Raises _UsedOtherwise."""
        uses = _BothUses()
        for node in self._loads(optimizer.targets[0], uses.optimizers):
            self._of_optimizer(node, call, uses)
        for node in self._loads(scheduler.targets[0], []):
            self._of_scheduler(node, uses)
        return uses

    def _of_optimizer(self, node: ast.Name, scheduler: ast.Call, uses: _BothUses) -> None:
        parents = self.ctx.source.parents
        match parent := parents.get(node):
            case ast.Attribute(attr="zero_grad"):
                return
            case ast.Attribute(attr="step"):
                uses.updates.append(self._alone(parents.get(parent)))
                return
            case ast.Call(func=ast.Attribute(attr="step" | "unscale_" as method, value=scaler), args=[_], keywords=[]):
                fact = self.ctx.fact(scaler)
                if isinstance(fact, Object) and fact.kind == "scaler":
                    if method == "step":
                        uses.updates.append(self._statement(parent))
                    return
        if (parents.get(parent) if isinstance(parent, ast.keyword) else parent) is not scheduler:
            raise _UsedOtherwise

    def _of_scheduler(self, node: ast.Name, uses: _BothUses) -> None:
        parents = self.ctx.source.parents
        match parent := parents.get(node):
            case ast.Attribute(attr="step"):
                uses.steps.append(self._alone(parents.get(parent)))
                return
            case ast.Attribute(attr="get_last_lr"):
                match asked := parents.get(parent):
                    case ast.Call(args=[], keywords=[]):
                        uses.reads.append(asked)
                        return
        raise _UsedOtherwise

    def _alone(self, call: ast.AST | None) -> ast.stmt:
        """The statement that is a call without arguments. Raises _UsedOtherwise."""
        if isinstance(call, ast.Call) and not call.args and not call.keywords:
            return self._statement(call)
        raise _UsedOtherwise

    def _statement(self, call: ast.AST) -> ast.stmt:
        statement = self.ctx.source.parents.get(call)
        if isinstance(statement, ast.Expr):
            return statement
        raise _UsedOtherwise

    def _loads(self, target: ast.expr, seen: list[Variable]) -> Iterator[ast.Name]:
        """Where a variable is read, under all the names by which it is ``seen``. Raises _UsedOtherwise."""
        assert isinstance(target, ast.Name)
        todo: list[Variable] = [(target.id, self.objects.home(target.id, self.objects.scope(target)))]
        calls: list[tuple[ast.arg, ast.Call]] = []
        while todo:
            name, home = todo.pop()
            seen.append((name, home))
            for node in self.objects.named(name, home):
                if not isinstance(node.ctx, ast.Load):
                    if node is not target:
                        raise _UsedOtherwise
                    continue
                given = self._given(node)
                if given is None:
                    yield node
                    continue
                parameter, call, function = given
                calls.append((parameter, call))
                if (parameter.arg, function) not in (*seen, *todo):
                    todo.append((parameter.arg, function))
        for parameter, _ in calls:
            if not all(self._is_one_of(seen, value) for value in self._passed(parameter)):
                raise _UsedOtherwise

    def _given(self, node: ast.Name) -> tuple[ast.arg, ast.Call, VariableScope] | None:
        """The parameter of a function of the file that a variable is passed for."""
        parent = self.ctx.source.parents.get(node)
        call = self.ctx.source.parents.get(parent) if isinstance(parent, ast.keyword) else parent
        info = called_function(self.ctx.fact(call.func)) if isinstance(call, ast.Call) else None
        if info is None or info.external or not isinstance(call, ast.Call):
            return None
        for parameter, value in bound_arguments(call, info):
            if value is node:
                return parameter, call, VariableScope(info)
        return None

    def _passed(self, parameter: ast.arg) -> Iterator[ast.expr | None]:
        for info in self.ctx.inference.functions.values():
            if parameter in symbols.named_parameters(info.node):
                for call in self.objects.calls(info):
                    yield next((v for p, v in bound_arguments(call, info) if p is parameter), None)

    def _is_one_of(self, variables: Sequence[Variable], node: ast.expr | None) -> bool:
        if not isinstance(node, ast.Name):
            return False
        return (node.id, self.objects.home(node.id, self.objects.scope(node))) in variables

    # --- whether each update has its step -----------------------------------------------------------------------

    def _goes_along(self, uses: _BothUses) -> bool:
        """Whether the scheduler goes on behind each update, and nowhere else."""
        if not uses.updates or any(n in self.used for n in (*uses.steps, *uses.reads)):
            return False
        behind = [self._step_behind(update, uses) for update in uses.updates]
        taken = {id(step) for step in behind if step is not None}
        return None not in behind and len(taken) == len(behind) == len(uses.steps)

    def _step_behind(self, at: ast.stmt, uses: _BothUses, depth: int = 0) -> ast.stmt | None:
        """The scheduler's step that surely follows a statement before anything else is done with the two."""
        source = self.ctx.source
        block = source.block_of(at) or []
        for statement in block[block.index(at) + 1 :]:
            if statement in uses.steps:
                return statement
            ends = isinstance(statement, ast.Return) and statement is block[-1]
            if uses.in_statement(statement) or _leaves(statement) and not ends:
                return None
        around = source.parents.get(at)
        if isinstance(around, ast.With):
            return self._step_behind(around, uses, depth)
        call = self._only_call(around, block[: block.index(at)]) if depth < DEPTH else None
        return self._step_behind(call, uses, depth + 1) if call is not None else None

    def _only_call(self, around: ast.AST | None, before: Sequence[ast.stmt]) -> ast.stmt | None:
        """The statement that runs a function whose body does something once, if it is the only one."""
        info = self.ctx.inference.functions.get(around) if around is not None else None
        calls = list(self.objects.calls(info)) if info is not None else []
        if len(calls) != 1 or any(map(_leaves, before)) or getattr(around, "decorator_list", None):
            return None
        for at in ancestors(calls[0], self.ctx.source.parents):
            if isinstance(at, ast.stmt):
                return at if isinstance(at, ast.Expr | ast.Assign | ast.AugAssign) else None
            if isinstance(at, _NOT_ONCE):
                break
        return None

    def _owners(self, uses: _BothUses) -> dict[ast.Call, str] | None:
        """What the optimizer is called where the rate is read; None where it isn't known there."""
        owners = {}
        for read in uses.reads:
            scope = self.objects.scope(read)
            seen = [(name, home) for name, home in uses.optimizers if self.objects.home(name, scope) == home]
            if not seen:
                return None
            owners[read], _ = min(seen, key=lambda variable: variable[1] != scope)
        return owners

    # --- what is written ------------------------------------------------------------------------------------------

    def _take(self, scheduler: ast.Assign, optimizer: ast.Assign, steps: Sequence[ast.stmt]) -> None:
        plans, name = self.ctx.plan.optimizers, ast.unparse(scheduler.targets[0])
        call, made = scheduler.value, optimizer.value
        plan = plans[made]
        moved = [n for n in plan.injected if n in _MOMENTUM]
        momentum = self.ctx.names.fresh(_MOMENTUM[moved[0]]) if moved else ""
        injected = plan.injected if moved else tuple(n for n in plan.injected if n != "lr")
        plans[made] = replace(plan, schedule=name, injected=injected, momentum=momentum)
        plans[call] = replace(plans[call], alone=True)

        comment = self._comment(optimizer) if self._comment(scheduler) or self._apart(optimizer, scheduler) else []

        def handler(statements: StatementRewriter) -> None:
            """The schedule in the scheduler's place, and the optimizer behind it."""
            current, renderer = self.ctx.scope.statement, statements.renderer
            assert current is not None
            text = renderer.render(call).text
            rate, *others = _parts(text) if momentum else (text,)
            self.ctx.edits.replace(call, rate)
            first = len(current.before)
            lines = [f"{ast.unparse(optimizer.targets[0])} = {renderer.render(made).text}"]
            lines = [*(f"{momentum} = {one}" for one in others), *comment, *current.before[first:], *lines]
            del current.before[first:]
            self.ctx.edits.insert_after(scheduler, lines)

        self.ctx.plan.on_statement(scheduler, handler)
        self.ctx.plan.on_statement(optimizer, lambda statements: self.ctx.edits.delete(optimizer, len(comment)))
        for statement in steps:
            self.ctx.plan.on_statement(statement, lambda statements, node=statement: self.ctx.edits.delete(node))  # type: ignore[misc]

    def _apart(self, first: ast.stmt, last: ast.stmt) -> bool:
        """Whether something stands between two statements of a block, so that a comment above is of the first alone."""
        block = self.ctx.source.block_of(first) or []
        return block.index(last) - block.index(first) > 1

    def _comment(self, statement: ast.stmt) -> list[str]:
        """The lines of comments right above a statement."""
        first = statement.lineno
        while first > 1 and self.ctx.source.line_text(first - 1).lstrip().startswith("#"):
            first -= 1
        return [self.ctx.source.line_text(n).strip() for n in range(first, statement.lineno)]

    def _read(self, read: ast.Call, owner: str) -> None:
        """``scheduler.get_last_lr()[0]``: what the schedule says of the updates so far."""
        assert isinstance(read.func, ast.Attribute)
        schedule = ast.unparse(read.func.value)
        rate = f"float({schedule}({owner}.step.item()))"
        match parent := self.ctx.source.parents.get(read):
            case ast.Subscript(slice=ast.Constant(value=0)):
                self.ctx.plan.on_expression(parent, lambda renderer: self._converted(Piece(rate, ATOM)))
            case _:
                self.ctx.plan.on_expression(read, lambda renderer: self._converted(Piece(f"[{rate}]")))

    def _converted(self, piece: Piece) -> Piece:
        self.ctx.report.count_converted()
        return piece


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement may be the last one of its block that runs."""
    return any(isinstance(n, _LEAVES) for n in symbols.walk(statement))


def _parts(text: str) -> tuple[str, ...]:
    """The texts of a tuple's elements."""
    tree = ast.parse(f"({text})", mode="eval").body
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return tuple(ast.get_source_segment(f"({text})", part) or "" for part in parts)
