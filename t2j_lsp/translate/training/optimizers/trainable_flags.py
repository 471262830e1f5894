"""Parameters that are frozen and trained again while a program runs: a flag of the variable, which optimizers ask for.

    for p in model.features.parameters():          set_trainable(model.features, False)
        p.requires_grad = False
    optimizer = SGD(model.parameters(), lr=0.1)    nnx.Optimizer(model, optax.sgd(0.1), wrt=is_trainable)

Where the file doesn't show by names which parameters that are, since a function freezes them, or a later phase trains
them again, the step takes gradients of what its optimizer updates, ``nnx.DiffState(0, optimizer.wrt)``. PyTorch's
optimizer asks for the flags at each step, and this one when it is made: so each change has to stand in front of one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.call_sites import function_run_by, reached_functions
from t2j_lsp.translate.rule.definitions import Class, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.given import NOTHING_GIVEN
from t2j_lsp.translate.training.program.named_modules import targets
from t2j_lsp.translate.training.program.objects import Objects

from .other_modules import other_names

_FLAG = "requires_grad"
_DEPTH = 6
"""How many callers are followed."""


@dataclass(frozen=True)
class _Change:
    """A change of flags."""

    place: ast.stmt
    """The statement behind which an optimizer is made."""
    statement: ast.stmt
    """The one that is written anew."""
    value: ast.expr
    module: ast.expr | None = None
    """The module of all whose parameters the flags are set; None where a loop picks some."""
    walk: ast.Call | None = None
    """The walk over parameters that such a loop goes over."""


class TrainableFlags:
    """Plans them, where all that a file does with such flags has a form."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.source = context.source

    def plan(self) -> bool:
        """Put handlers on the statements that set flags, and on what counts by them; whether everything has a form."""
        plans = self.ctx.plan.optimizers
        if self.source.given is not NOTHING_GIVEN or not plans or not all(map(_takes_filter, plans.values())):
            return False
        changes, counts = self._changes(), self._counts()
        if changes is None or counts is None or not all(self._is_asked_for(one.place, 0) for one in changes):
            return False
        if any(map(self._leaves_nothing, changes)):
            return False
        for change in changes:
            self.ctx.plan.on_statement(change.statement, lambda statements, one=change: self._set(one, statements))  # type: ignore[misc]
            if (walk := change.walk) is not None:
                self.ctx.plan.on_expression(walk, lambda renderer, walk=walk: self._walk(renderer, walk))  # type: ignore[misc]
        for count, module in counts:
            self.ctx.plan.on_expression(count, lambda renderer, m=module: self._count(renderer, m))  # type: ignore[misc]
        for call, plan in plans.items():
            plans[call] = replace(plan, flagged=True)
        return True

    # --- what sets and reads flags ----------------------------------------------------------------------------------

    def _changes(self) -> list[_Change] | None:
        """What sets the flags of a module's parameters; None where something has no form."""
        changes: list[_Change] = []
        for node in self.source.nodes:
            flag = _flag_set(node)
            if flag is None or isinstance(fact := self.ctx.fact(flag[0]), Tensor) and not fact.variable:
                continue
            statement = node if isinstance(node, ast.stmt) else self.source.parents.get(node)
            change = self._change(statement, *flag) if isinstance(statement, ast.Assign | ast.Expr) else None
            if change is None:
                return None
            changes.append(change)
        return changes

    def _change(self, statement: ast.stmt, owner: ast.expr, value: ast.expr) -> _Change | None:
        if is_module(self.ctx.fact(owner)):
            return _Change(statement, statement, value, owner)
        around = (one for one in ancestors(statement, self.source.parents) if isinstance(one, ast.For))
        loop = next((one for one in around if _binds(one, owner)), None)
        walks = [w for n in symbols.walk(loop.iter) if (w := _walk(n)) is not None] if loop is not None else []
        if loop is None or len(walks) != 1 or not is_module(self.ctx.fact(walks[0].value)):
            return None
        if loop.body == [statement] and not loop.orelse and _is_whole(loop, walks[0]):
            return _Change(loop, loop, value, walks[0].value)
        call = self.source.parents.get(walks[0])
        return (
            _Change(loop, statement, value, walk=call)
            if isinstance(call, ast.Call) and _sets_only(loop, owner)
            else None
        )

    def _counts(self) -> list[tuple[ast.Call, ast.expr]] | None:
        """Sums over the parameters that are trained; None where flags are asked for by others than optimizers."""
        counts: list[tuple[ast.Call, ast.expr]] = []
        for node in self.source.nodes:
            if not isinstance(node, ast.Attribute) or node.attr != _FLAG or not isinstance(node.ctx, ast.Load):
                continue
            if isinstance(fact := self.ctx.fact(node.value), Tensor) and not fact.variable:
                continue
            around = [*ancestors(node, self.source.parents)]
            if any(one in self.ctx.plan.optimizers for one in around):
                continue
            count = next((one for one in around if isinstance(one, ast.Call)), None)
            module = _counted(count) if count is not None else None
            if count is None or module is None or not is_module(self.ctx.fact(module)):
                return None
            counts.append((count, module))
        return counts

    def _leaves_nothing(self, change: _Change) -> bool:
        """Whether all of a module is frozen that is no part of another one, and gets none that is trained."""
        module, value = change.module, change.value
        if not isinstance(module, ast.Name) or not isinstance(value, ast.Constant) or value.value:
            return False
        scope = self.objects.scope(change.place)
        if any(True for _ in other_names(self.ctx, module.id, scope)):
            return False
        around = scope.node if scope.node is not None else self.source.tree
        later = (n for n in symbols.walk(around) if isinstance(n, ast.Attribute) and n.lineno > change.place.lineno)
        parts = [n for n in later if isinstance(n.ctx, ast.Store) or n.attr in (_FLAG, "requires_grad_")]
        return not any(_root(n) == module.id for n in parts)

    # --- when -------------------------------------------------------------------------------------------------------

    def _is_asked_for(self, node: ast.AST, depth: int) -> bool:
        """Whether an optimizer is made behind a change of flags, before anything else can use the flags."""
        inner: ast.AST = node
        for around in ancestors(node, self.source.parents):
            if isinstance(around, ast.stmt | ast.Module) and isinstance(inner, ast.stmt):
                block = self.source.block_of(inner) or []
                if inner in block and any(map(self._makes_optimizer, block[block.index(inner) + 1 :])):
                    return True
            if isinstance(around, FunctionNode):
                return self._is_asked_by_callers(around, depth)
            inner = around if isinstance(around, ast.stmt) else inner
        return False

    def _is_asked_by_callers(self, function: ast.AST, depth: int) -> bool:
        info = next((one for one in self.ctx.inference.functions.values() if one.node is function), None)
        if info is None or depth > _DEPTH:
            return False
        calls = [n for n in self.source.nodes if isinstance(n, ast.Call) and self._runs(n, info)]
        named = [n for n in self.source.nodes if getattr(n, "attr", getattr(n, "id", "")) == info.name]
        if info.name != "__init__" and len(named) > len(calls):
            return False  # it is handed on
        return all(self._is_asked_for(call, depth + 1) for call in calls)

    def _runs(self, call: ast.Call, info: FunctionInfo) -> bool:
        fact = self.ctx.fact(call.func)
        if info.name == "__init__" and info.owner is not None:
            return isinstance(fact, Class) and info.owner in fact.info.ancestry()
        return function_run_by(self.ctx.inference, call) is info

    def _makes_optimizer(self, statement: ast.stmt) -> bool:
        run = [statement, *(info.node for info in reached_functions(self.ctx.inference, [statement]))]
        made = (self.ctx.fact(n.func) for n in symbols.walk(statement) if isinstance(n, ast.Call))
        run += [m.node for fact in made if isinstance(fact, Class) and (m := fact.info.method("__init__")) is not None]
        return any(n in self.ctx.plan.optimizers for code in run for n in symbols.walk(code) if isinstance(n, ast.Call))

    # --- writing ----------------------------------------------------------------------------------------------------

    def _set(self, change: _Change, statements: StatementRewriter) -> None:
        renderer, flag = statements.renderer, statements.renderer.argument(change.value).text
        if change.module is not None:
            text = f"{renderer.need('set_trainable')}({renderer.argument(change.module).text}, {flag})"
        else:
            flagged = _flag_set(change.statement) or _flag_set(getattr(change.statement, "value", change.statement))
            assert flagged is not None
            text = f"{ast.unparse(flagged[0])}.set_metadata(trainable={flag})"
        self.ctx.edits.replace(change.statement, text)
        self.ctx.report.count_converted()

    def _walk(self, renderer: ExpressionRenderer, call: ast.Call) -> Piece:
        """The variables of a module's parameters, with PyTorch's names for ``named_parameters()``."""
        assert isinstance(call.func, ast.Attribute)
        self.ctx.report.count_converted()
        named = f"{renderer.need('named_variables')}({renderer.argument(call.func.value).text})"
        return Piece(named if call.func.attr == "named_parameters" else f"[p for _, p in {named}]")

    def _count(self, renderer: ExpressionRenderer, module: ast.expr) -> Piece:
        self.ctx.report.count_converted()
        state = f"{renderer.need('nnx')}.state({renderer.argument(module).text}, {renderer.need('is_trainable')})"
        return Piece(f"sum(p.size for p in {renderer.need('jax')}.tree.leaves({state}))")


def _root(node: ast.expr) -> str:
    """The variable that something is read of, by attributes, items and methods."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _flag_set(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Whose flag is set, and to what: ``p.requires_grad = x``, ``p.requires_grad_(x)``."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=owner)], value=value):
            return owner, value
        case ast.Attribute(attr="requires_grad", value=owner, ctx=ast.Store()):
            return None  # of the assignment above, or of one that has no form
        case ast.Call(func=ast.Attribute(attr="requires_grad_", value=owner), args=args, keywords=keywords):
            given: Sequence[ast.expr] = [*args, *(k.value for k in keywords)]
            return owner, given[0] if given else ast.Constant(True)
    return None


def _walk(node: ast.AST) -> ast.Attribute | None:
    """``net.parameters`` of a call that walks over all parameters of a module."""
    match node:
        case ast.Call(func=ast.Attribute(attr="parameters" | "named_parameters") as walk, args=[], keywords=[]):
            return walk
    return None


def _is_whole(loop: ast.For, walk: ast.Attribute) -> bool:
    """Whether a loop goes over all parameters of a module: its statement is one of the module."""
    match loop:
        case ast.For(target=ast.Name(), iter=ast.Call(func=walked)):
            return walked is walk and walk.attr == "parameters"
        case ast.For(target=ast.Tuple(elts=[ast.Name(), ast.Name()]), iter=ast.Call(func=walked)):
            return walked is walk and walk.attr == "named_parameters"
    return False


def _binds(loop: ast.For, item: ast.expr) -> bool:
    """Whether a loop gives a variable its values."""
    return isinstance(item, ast.Name) and any(getattr(n, "id", "") == item.id for n in symbols.walk(loop.target))


def _sets_only(loop: ast.For, item: ast.expr) -> bool:
    """Whether a loop does nothing with its variable but to set its flag."""
    owners = {flag[0] for n in symbols.walk(loop) if (flag := _flag_set(n)) is not None}
    reads = (n for s in loop.body for n in symbols.walk(s) if isinstance(n, ast.Name) and ast.unparse(item) == n.id)
    return all(read in owners for read in reads)


def _takes_filter(plan: OptimizerPlan) -> bool:
    """Whether an optimizer has the parameters of one module, as far as they aren't frozen."""
    otherwise = plan.groups or plan.leaves or plan.of_tensors or plan.part
    return not otherwise and len(targets(plan.target) if plan.target else ()) == 1


def _counted(call: ast.Call) -> ast.expr | None:
    """The module in ``sum(p.numel() for p in net.parameters() if p.requires_grad)``."""
    match call:
        case ast.Call(
            func=ast.Name(id="sum"),
            args=[
                ast.GeneratorExp(
                    elt=ast.Call(func=ast.Attribute(attr="numel" | "nelement", value=ast.Name(id=counted)), args=[]),
                    generators=[
                        ast.comprehension(
                            target=ast.Name(id=name),
                            iter=ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[]),
                            ifs=[ast.Attribute(attr="requires_grad", value=ast.Name(id=asked))],
                        )
                    ],
                )
            ],
        ) if counted == name == asked:
            return module
    return None
