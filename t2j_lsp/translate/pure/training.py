"""Modules that one scope makes, calls and trains: their parameters are a variable there, which an optimizer updates.

What is written is PyTorch's own training of a bare tensor, ``torch.optim.Adam([params])``: the translation makes the
compiled step of it that hand-written JAX has.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, ancestors, with_ancestors
from t2j_lsp.translate.expressions.context import Edits
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, ClassInfo
from t2j_lsp.translate.rule.facts import TENSOR, Fact, Object, Qual
from t2j_lsp.translate.rule.facts import Tuple as TupleFact
from t2j_lsp.translate.rule.library import Trait, names_with

from .names import FunctionNames
from .plan import ModulePlan

_SEEDS = names_with(Trait.SEED)
_MOVES = names_with(Trait.TO_DEVICE)
_STEPS = ("zero_grad", "step")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While)
_BRANCHES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp, ast.While)


_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


class _NoForm(Exception):
    """The module is used in a way that has no form yet."""


@dataclass
class _TrainedModule:
    """One module in the scope that makes it, and what is read and written of it there."""

    name: str
    made: ast.Assign
    constructor: ast.Call
    plan: ModulePlan
    scope: _Scope
    calls: list[ast.Call] = field(default_factory=list)
    switches: list[tuple[ast.Expr, bool]] = field(default_factory=list)
    """Statements that set the mode, and whether it is that of training."""
    moves: list[ast.Expr] = field(default_factory=list)
    optimizers: list[ast.Call] = field(default_factory=list)
    handled: set[ast.AST] = field(default_factory=set)
    """Nodes that are no objection if it is rewritten."""
    modes: dict[ast.Call, bool] = field(default_factory=dict)
    """Whether it is in training where it is called."""
    hosts: dict[ast.Call, ast.stmt] = field(default_factory=dict)
    """For calls that draw: the statement in front of which their key is split off."""


class TrainedModules:
    """The modules of the scopes in which every use of every module has a form."""

    def __init__(
        self,
        inference: Inference,
        plans: Mapping[ClassInfo, ModulePlan],
        names: FunctionNames,
        edits: Edits,
        expressions: dict[tuple[str, str], Fact],
    ) -> None:
        self.inference, self.source = inference, inference.source
        self.plans, self.names, self.edits, self.expressions = plans, names, edits, expressions
        self._taken: dict[_Scope, set[str]] = defaultdict(set)
        self._modules: dict[_Scope, list[_TrainedModule]] = {}
        unsure: set[_Scope] = set()
        for node in self.source.nodes if plans else ():
            if isinstance(node, ast.Assign) and (one := self._of(node)) is not None:
                try:
                    self._read(one)
                    self._modules.setdefault(one.scope, []).append(one)
                except _NoForm:
                    unsure.add(one.scope)
        for scope in unsure:
            self._modules.pop(scope, None)

    @property
    def handled(self) -> set[ast.AST]:
        """What is written anew, and is no reason for its statement to stay."""
        return {node for modules in self._modules.values() for one in modules for node in one.handled}

    def steps(self, node: ast.AST) -> bool:
        """Whether the scope that a node stands in has an optimizer whose step is written."""
        scope = self._scope(node)
        return scope is not None and any(one.optimizers for one in self._modules.get(scope, ()))

    def leave(self, statements: Set[ast.AST]) -> bool:
        """Leave the scopes alone that have a part in one of these statements; whether there were any."""
        left = [
            scope
            for scope, modules in self._modules.items()
            if any(at in statements for one in modules for node in one.handled for at in self._around(node))
        ]
        for scope in left:
            del self._modules[scope]
        return bool(left)

    def write(self) -> None:
        """Record the edits."""
        for modules in self._modules.values():
            for one in modules:
                self._rewrite(one)

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        return with_ancestors(node, self.source.parents)

    # --- what is there --------------------------------------------------------------------------------------------

    def _of(self, node: ast.Assign) -> _TrainedModule | None:
        value: ast.expr = node.value
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
            value = value.func.value
        fact = self.inference.fact(value.func) if isinstance(value, ast.Call) else None
        if not isinstance(value, ast.Call) or not isinstance(fact, Class) or fact.info not in self.plans:
            return None
        scope, target = self._scope(node), node.targets[0]
        block = self.source.block_of(node)
        if scope is None or len(node.targets) > 1 or not isinstance(target, ast.Name) or block is not scope.body:
            return None
        return _TrainedModule(target.id, node, value, self.plans[fact.info], scope)

    def _scope(self, node: ast.AST) -> _Scope | None:
        """The module, or the function of its top level, that a node stands in."""
        around = next((at for at in ancestors(node, self.source.parents) if isinstance(at, _SCOPES)), None)
        if around is None:
            return self.source.tree
        top = self.source.parents.get(around) is self.source.tree
        return around if top and isinstance(around, FunctionNode) else None

    def _read(self, one: _TrainedModule) -> None:
        """Sort the uses of a module by what they do. Raises _NoForm."""
        for node in self._uses(one.name, one.made, one.scope):
            parent = self.source.parents[node]
            above = self.source.parents[parent]
            match parent:
                case ast.Call(func=func) if func is node:
                    one.calls.append(parent)
                case ast.Attribute(attr="parameters") if self._is_optimized(above):
                    one.optimizers.append(self.source.parents[above])  # type: ignore[arg-type]
                case ast.Attribute(attr="train" | "eval"):
                    one.switches.append((statement := self._statement_of(above), _mode(parent.attr, statement.value)))
                case ast.Attribute() if parent.attr in _MOVES:
                    one.moves.append(self._statement_of(above))
                case _:
                    raise _NoForm
        if len(one.optimizers) > 1 or not all(self._is_plain(call, one) for call in one.optimizers):
            raise _NoForm
        one.modes = {call: self._mode_at(one, call) for call in one.calls}
        one.hosts = {call: self._host(call) for call in one.calls if one.plan.draws and one.modes[call]}
        stored = [call for call in one.calls if one.plan.updates and one.modes[call]]
        if len({*one.hosts.values()}) < len(one.hosts) or any(map(_is_unreadable, one.calls)):
            raise _NoForm
        if not all(self._is_assigned(call) for call in stored):
            raise _NoForm
        changed = [one.made, *one.moves, *(s for s, _ in one.switches), *(made.args[0] for made in one.optimizers)]
        parts = (node for root in changed for node in symbols.walk(root))
        one.handled |= {node for node in parts if isinstance(node, ast.expr | ast.stmt)}
        one.handled |= {node for call in one.calls for node in (call, call.func)}

    def _uses(self, name: str, made: ast.AST, scope: ast.AST) -> Iterator[ast.Name]:
        """Every place that reads a name, which only one statement binds. Raises _NoForm."""
        for node in self.source.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
                raise _NoForm
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            if self._scope(node) is not scope or not isinstance(node.ctx, ast.Load):
                local = self._scope(node)
                if local is scope and self.source.parents[node] is made:
                    continue
                if local is scope or local is None or name not in self.source.symbols.bound(local):
                    raise _NoForm
                continue
            yield node

    def _statement_of(self, call: ast.AST) -> ast.Expr:
        statement = self.source.parents.get(call)
        if not isinstance(call, ast.Call) or not isinstance(statement, ast.Expr):
            raise _NoForm
        return statement

    def _is_optimized(self, call: ast.AST) -> bool:
        """Whether ``model.parameters()`` is the first argument of an optimizer."""
        made = self.source.parents.get(call)
        if not isinstance(call, ast.Call) or call.args or call.keywords or not isinstance(made, ast.Call):
            return False
        fact, library = self.inference.fact(made), self.inference.fact(made.func)
        return (
            made.args[:1] == [call]
            and isinstance(fact, Object)
            and fact.kind == "optimizer"
            and isinstance(library, Qual)
            and library.name.startswith("torch.optim.")
        )

    def _is_plain(self, made: ast.Call, one: _TrainedModule) -> bool:
        """Whether an optimizer is in a variable that is only asked to step, and to clear gradients."""
        statement = self.source.parents[made]
        if not isinstance(statement, ast.Assign) or not isinstance(target := statement.targets[0], ast.Name):
            return False
        for node in self._uses(target.id, statement, self._scope(statement) or self.source.tree):
            parent = self.source.parents[node]
            if not isinstance(parent, ast.Attribute) or parent.attr not in _STEPS:
                return False
            call = self.source.parents[parent]
            if not isinstance(call, ast.Call) or call.args:
                return False
            one.handled |= {node, parent, call}
        one.handled |= {target, made, made.func}
        return True

    def _mode_at(self, one: _TrainedModule, node: ast.AST) -> bool:
        """Whether a module is in training where it is called. Raises _NoForm."""
        around = [*with_ancestors(node, self.source.parents)]
        before = [s for s in one.switches if s[0].lineno < node.lineno]  # type: ignore[attr-defined]
        last = before[-1] if before else None
        if last is not None and self.source.parents[last[0]] not in around:
            raise _NoForm
        for loop in around:
            if isinstance(loop, _LOOPS) and (last is None or last[0] not in symbols.walk(loop)):
                if any(switch in symbols.walk(loop) for switch, _ in one.switches):
                    raise _NoForm
        return last[1] if last is not None else True

    # --- what is written ------------------------------------------------------------------------------------------

    def _rewrite(self, one: _TrainedModule) -> None:
        params, key = self._fresh("params", one), self._fresh("key", one)
        state = self._fresh("state", one) if one.plan.state else ""
        function = one.scope.name if isinstance(one.scope, FunctionNode) else ""
        self.expressions[function, "jax.random"] = Qual("jax.random")
        self._make(one, function, params, state, key if one.hosts else "")
        for call in one.calls:
            self._call(call, one, [params, state], key if call in one.hosts else "")
            if one.plan.updates and one.modes[call]:
                target = _targets(self.source.parents[call])[0]
                end = self.source.span(target)[1]
                self.edits.add(end, end, f", {state}")
        for host in one.hosts.values():
            split = f"{self.names.library('jax')}.random.split({key})"
            self.expressions[function, split] = TupleFact((TENSOR, TENSOR))
            self.edits.insert_before(host, [f"{key}, step_{key} = {split}"], priority=3)
        for statement in [*one.moves, *(switch for switch, _ in one.switches)]:
            self.edits.delete(statement)
        for made in one.optimizers:
            self.edits.replace(made.args[0], f"[{params}]")

    def _make(self, one: _TrainedModule, function: str, params: str, state: str, key: str) -> None:
        """``params = init_net(jax.random.key(0), 4, 16)``."""
        made = f"{self.names.library('jax')}.random.key({self._seed(one)})"
        if key:
            self.expressions[function, f"jax.random.split({made})"] = TupleFact((TENSOR, TENSOR))
            self.edits.insert_before(one.made, [f"{key}, init_{key} = jax.random.split({made})"], priority=3)
            made = f"init_{key}"
        start = self.source.text.index("(", self.source.span(one.constructor.func)[1]) + 1
        given = self.source.text[start : self.source.span(one.constructor)[1] - 1].strip()
        text = f"{self.names.init(one.plan.info)}({', '.join(filter(None, [made, given]))})"
        code = ast.unparse(ast.parse(text, mode="eval").body)
        self.expressions[function, code] = TupleFact((TENSOR, TENSOR)) if state else TENSOR
        self.edits.replace(one.made, f"{params}, {state} = {text}" if state else f"{params} = {text}")

    def _call(self, call: ast.Call, one: _TrainedModule, held: list[str], key: str) -> None:
        """``net(params, x, key=step_key, train=True)`` for ``model(x)``."""
        trains = one.modes[call]
        given = {k.arg: k.value for k in one.constructor.keywords if k.arg is not None}
        given |= dict(zip(one.plan.parameters, one.constructor.args, strict=False))
        behind = [f"{name}={self.source.segment(given[name])}" for name in one.plan.settings if name in given]
        behind += [f"{one.plan.key}=step_{key}"] if key else []
        behind += ["train=True"] if trains and one.plan.trains else []
        self.edits.replace(call.func, self.names.apply(one.plan.info))
        first = min(self.source.span(a)[0] for a in (*call.args, *call.keywords))
        last = max(self.source.span(a)[1] for a in (*call.args, *call.keywords))
        self.edits.add(first, first, "".join(f"{name}, " for name in filter(None, held)))
        self.edits.add(last, last, "".join(f", {one_given}" for one_given in behind))
        if one.plan.updates and not trains:
            end = self.source.span(call)[1]
            self.edits.add(end, end, "[0]")

    def _host(self, call: ast.Call) -> ast.stmt:
        """The statement in front of which the key of a call is split off: the first of the loop around it."""
        statement: ast.stmt | None = None
        for around in with_ancestors(call, self.source.parents):
            if isinstance(around, _BRANCHES):
                raise _NoForm
            if isinstance(around, ast.stmt) and statement is None:
                statement = around
            if isinstance(around, ast.For):
                return around.body[0]
        assert statement is not None
        return statement

    def _is_assigned(self, call: ast.Call) -> bool:
        return len(_targets(self.source.parents[call])) == 1

    def _seed(self, one: _TrainedModule) -> str:
        """The number that the program seeds PyTorch with in front of a module; 0 where it doesn't."""
        for node in self.source.nodes:
            if isinstance(node, ast.Call) and node.lineno < one.made.lineno and self._scope(node) is one.scope:
                fact = self.inference.fact(node.func)
                if isinstance(fact, Qual) and fact.name in _SEEDS and len(node.args) == 1:
                    if isinstance(node.args[0], ast.Constant):
                        return str(node.args[0].value)
        return "0"

    def _fresh(self, name: str, one: _TrainedModule) -> str:
        """A name of the scope: ``params``, or ``model_params`` where that is taken."""
        names = [name, f"{one.name}_{name}", *(f"{one.name}_{name}{n}" for n in range(2, 99))]
        free = next(n for n in names if n not in self.source.symbols.names | self._taken[one.scope])
        self._taken[one.scope].add(free)
        return free


def _targets(statement: ast.AST) -> list[ast.expr]:
    """What an assignment assigns; nothing for other statements."""
    return statement.targets if isinstance(statement, ast.Assign) else []


def _mode(method: str, call: ast.expr) -> bool:
    """The mode that ``model.train(False)`` sets. Raises _NoForm."""
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    if method == "eval" or not given:
        return method == "train"
    if not isinstance(given[0], ast.Constant):
        raise _NoForm
    return bool(given[0].value)


def _is_unreadable(call: ast.Call) -> bool:
    """Whether a call has no argument, or one that isn't an expression of its own."""
    return not (call.args or call.keywords) or isinstance((*call.args, *call.keywords)[0], ast.GeneratorExp)
