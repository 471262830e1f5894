"""Modules that are frozen while another one is trained, and trained again: ``requires_grad`` switched off and on.

PyTorch programs spare themselves gradients that nobody uses, as GANs do. In JAX a step takes gradients only for what it
updates, so these switches mean nothing where every step finds what it updates switched on, with all that its loss was
computed from. That is followed here, statement by statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.named_modules import targets
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import Reader, Refused, StepCall

TOGGLED = "Every step finds what it updates switched on, and in JAX it takes gradients for nothing else."
ASKED = "JAX arrays carry no such flag: what is differentiated is said where the gradient is taken."
_CUTS = names_with(Trait.STOPS_GRADIENT)


@dataclass(frozen=True)
class Switch:
    """A statement that sets the flag of all parameters of a module."""

    node: ast.stmt
    module: ast.expr
    on: bool


def switch(node: ast.AST) -> Switch | None:
    """``for p in net.parameters(): p.requires_grad = False``, ``net.requires_grad_(True)``."""
    match node:
        case ast.For(
            target=ast.Name(id=name) | ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]) as target,
            iter=ast.Call(
                func=ast.Attribute(attr="parameters" | "named_parameters" as walk, value=module), args=[], keywords=[]
            ),
            body=[
                ast.Assign(
                    targets=[ast.Attribute(attr="requires_grad", value=ast.Name(id=owner))],
                    value=ast.Constant(value=bool() as on),
                )
                | ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(attr="requires_grad_", value=ast.Name(id=owner)),
                        args=[ast.Constant(value=bool() as on)],
                    )
                )
            ],
            orelse=[],
        ) if name == owner and isinstance(target, ast.Name) == (walk == "parameters"):
            return Switch(node, module, on)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_", value=module), args=args, keywords=[])):
            match args:
                case []:
                    return Switch(node, module, True)
                case [ast.Constant(value=bool() as on)]:
                    return Switch(node, module, on)
    return None


def asking_for_gradients(context: Context) -> dict[ast.AST, str]:
    """The statements that say of tensors which are no parameters that gradients are taken by them, and why they go."""
    asking: dict[ast.AST, str] = {}
    for node in context.source.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(attr="requires_grad", value=ast.Name() as owner)], value=ast.Constant(value=True)
            ):
                pass
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="requires_grad_", value=ast.Name() as owner),
                    args=[] | [ast.Constant(value=True)],
                    keywords=[],
                )
            ):
                pass
            case _:
                continue
        fact = context.fact(owner)
        if isinstance(fact, Tensor) and fact.sure and not fact.variable:
            asking[node] = ASKED
    return asking


class Toggled:
    """Finds the switches of a file that mean nothing in JAX."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.reader = Reader(context.inference)

    def switches(self) -> list[ast.stmt]:
        """The statements of the functions that switch modules on again; none where one of them isn't sure."""
        every = [flag for n in self.ctx.source.nodes if (flag := switch(n)) is not None]
        scopes: dict[VariableScope, list[Switch]] = {}
        for one in [s for s in every if is_module(self.ctx.fact(s.module))]:
            scopes.setdefault(self.objects.scope(one.node), []).append(one)
        switching = {scope: mine for scope, mine in scopes.items() if any(one.on for one in mine)}
        try:
            for scope, mine in switching.items():
                _SwitchingScope(self, scope, mine).check()
        except (_Unsure, Refused):
            return []
        return [one.node for mine in switching.values() for one in mine]

    def steps(self) -> Iterator[tuple[VariableScope, StepCall]]:
        """Every step of an optimizer in the file. Raises Refused."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Expr) and (call := self.reader.read(node)) is not None and call.kind == "step":
                yield self.objects.scope(node), call


class _Unsure(Exception):
    """Something may mind the switches."""


@dataclass
class _State:
    """What is known at one place of a function."""

    on: dict[str, bool | None]
    """Whether each module is switched on; None where it may be either."""
    cold: dict[str, set[str]]
    """For each module the variables that were computed with it while it may have been off."""
    left: set[str] = field(default_factory=set)
    """The modules with a backward pass while they were off, since their gradients were zeroed."""

    def copy(self) -> _State:
        return _State(dict(self.on), {m: set(names) for m, names in self.cold.items()}, set(self.left))

    def joined(self, other: _State) -> _State:
        on = {m: known if known is other.on[m] else None for m, known in self.on.items()}
        return _State(on, {m: names | other.cold[m] for m, names in self.cold.items()}, self.left | other.left)


class _SwitchingScope:
    """One function that switches modules, or the module level."""

    def __init__(self, toggled: Toggled, scope: VariableScope, switches: Sequence[Switch]) -> None:
        self.toggled, self.ctx, self.objects, self.scope = toggled, toggled.ctx, toggled.objects, scope
        self.switches = {one.node: one for one in switches}
        self.flow = DataFlow(self.ctx.source.symbols, self.objects.holder(scope))
        self.roots: dict[str, str] = {}
        for one in switches:
            root = self.flow.root(one.module)
            if root is None:
                raise _Unsure
            self.roots[ast.unparse(one.module)] = root
        self.jumps: list[list[_State]] = []
        self.exits: list[_State] = []
        self.called: dict[ast.AST, set[str]] = {}

    def check(self) -> None:
        """Raises _Unsure if something may mind the switches."""
        names = sorted(self.roots)
        if any(other.startswith(f"{one}.") for one in names for other in names):
            raise _Unsure
        body = self.scope.function.node.body if self.scope.function is not None else self.ctx.source.tree.body
        entry = _State(dict.fromkeys(names, True), {name: set() for name in names})
        while True:
            self.exits = []
            end = self._block(body, entry.copy())
            known = entry
            if self.scope.function is not None:
                for state in (end, *self.exits):
                    known = known.joined(
                        _State(state.on, {m: _kept(held) for m, held in state.cold.items()}, state.left)
                    )
            if known == entry:
                break
            entry = known
        trained = self._trained_here()
        for name in names:
            if name not in trained and not all(state.on[name] is True for state in (end, *self.exits)):
                raise _Unsure
            if name not in trained and any(_kept(state.cold[name]) for state in (end, *self.exits)):
                raise _Unsure

    def _trained_here(self) -> set[str]:
        """The modules that steps of this function update, and no other step. Raises _Unsure."""
        mine: dict[str, set[ast.Call]] = {}
        others: set[ast.Call] = set()
        for scope, call in self.toggled.steps():
            made = self.objects.constructors(call.subject, scope)
            if made is None:
                raise _Unsure
            if scope != self.scope:
                others.update(made)
                continue
            for name in self._updated(call.subject):
                mine.setdefault(name, set()).update(made)
        if any(made & others for made in mine.values()):
            raise _Unsure
        return set(mine)

    # --- statements -----------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], state: _State) -> _State:
        for node in body:
            state = self._statement(node, state)
        return state

    def _statement(self, node: ast.stmt, state: _State) -> _State:
        if node in self.switches:
            one = self.switches[node]
            state.on[ast.unparse(one.module)] = one.on
            return state
        match node:
            case ast.If():
                self._plain(node.test, state)
                return self._block(node.body, state.copy()).joined(self._block(node.orelse, state.copy()))
            case ast.For() | ast.While():
                return self._loop(node, state)
            case ast.With():
                for item in node.items:
                    self._plain(item, state)
                return self._block(node.body, state)
            case ast.Break() | ast.Continue():
                self.jumps[-1].append(state.copy())
            case ast.Return():
                if node.value is not None:
                    read = self._flows_from(node.value)
                    if any(held & read or self.roots[m] in read and not state.on[m] for m, held in state.cold.items()):
                        raise _Unsure
                self.exits.append(state.copy())
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case ast.Try() | ast.Match() | ast.AsyncFor() | ast.AsyncWith():
                for inner in symbols.walk(node):
                    if isinstance(inner, ast.stmt) and (inner in self.switches or self.toggled.reader.read(inner)):
                        raise _Unsure
                self._plain(node, state)
                if self.jumps:
                    self.jumps[-1].append(state.copy())
                self.exits.append(state.copy())
            case _:
                call = self.toggled.reader.read(node)
                if call is None:
                    self._plain(node, state)
                else:
                    self._step_call(call, state)
        return state

    def _flows_from(self, node: ast.AST) -> set[str]:
        """The variables from which gradients may flow into a value: not ``loss`` in ``float(loss.item())``."""
        if isinstance(node, ast.expr) and _is_cut(node):
            return set()
        parts = [] if isinstance(node, ast.Name | ast.Attribute) else list(ast.iter_child_nodes(node))
        return set().union(*map(self._flows_from, parts)) if parts else set(self.flow.reads(node))

    def _loop(self, node: ast.For | ast.While, state: _State) -> _State:
        head = node.iter if isinstance(node, ast.For) else node.test
        self._plain(head, state)
        while True:
            self.jumps.append([])
            end = self._block(node.body, state.copy())
            for jump in self.jumps.pop():
                end = end.joined(jump)
            known = state.joined(end)
            if known == state:
                return self._block(node.orelse, state)
            state = known

    def _step_call(self, call: StepCall, state: _State) -> None:
        match call.kind:
            case "backward":
                read = self.flow.reads(call.subject)
                for name, on in state.on.items():
                    if on is None or on and (state.cold[name] & read):
                        raise _Unsure
                    if not on:
                        state.left.add(name)
            case "zero":
                state.left -= self._updated(call.subject)
            case "step":
                for name in self._updated(call.subject):
                    if state.on[name] is not True or name in state.left:
                        raise _Unsure

    def _updated(self, subject: ast.expr) -> set[str]:
        """The modules of which an optimizer has parameters, or which are zeroed. Raises _Unsure."""
        if is_module(self.ctx.fact(subject)):
            text = ast.unparse(subject)
            return {name for name in self.roots if f"{name}.".startswith(f"{text}.")}
        modules = self.objects.modules(subject, self.scope)
        if modules is None and self._has_bare_tensors(subject):
            return set()
        if modules is None:
            raise _Unsure
        each = [text for module in modules for text in targets(module)]
        return {n for n in self.roots for one in each if f"{n}.".startswith(f"{one}.") or one.startswith(f"{n}.")}

    def _has_bare_tensors(self, optimizer: ast.expr) -> bool:
        """Whether an optimizer updates tensors that are no parameters of modules: ``Adam([self.log_alpha])``."""
        made = self.objects.constructors(optimizer, self.scope)
        given = [argument(call, 0, "params") for call in made or ()]
        lists = [one.elts for one in given if isinstance(one, ast.List | ast.Tuple)]
        facts = [self.ctx.fact(item) for items in lists for item in items]
        bare = all(isinstance(fact, Tensor) and not fact.variable for fact in facts)
        return bool(facts) and len(lists) == len(given) and bare

    def _plain(self, node: ast.AST, state: _State) -> None:
        """What other code computes with the modules, or with what was computed with them."""
        uses = self.flow.uses(node)
        read, written = set(uses.reads), set(uses.writes)
        for call in symbols.walk(node):
            if isinstance(call, ast.Call) and (info := called_function(self.ctx.fact(call.func))) is not None:
                mentioned, stored = self._inside(info)
                read |= {root for root in self.roots.values() if root.rpartition(".")[2] in mentioned}
                written |= stored
        cut = isinstance(node, ast.Assign) and _is_cut(node.value)
        for name, root in self.roots.items():
            cold = not cut and (root in read and state.on[name] is not True or bool(state.cold[name] & read))
            if cold:
                state.cold[name] |= written - {root}
            elif isinstance(node, ast.Assign) and all(isinstance(t, ast.Name | ast.Tuple) for t in node.targets):
                state.cold[name] -= written

    def _inside(self, info: FunctionInfo) -> tuple[set[str], set[str]]:
        """Every name that a function and those that it calls mention, and the attributes that they set.

        Raises _Unsure if they make updates.
        """
        waiting, seen = [info], {info}
        names, stored = set[str](), set[str]()
        while waiting:
            for node in symbols.walk(waiting.pop().node):
                if isinstance(node, ast.Name):
                    names.add(node.id)
                elif isinstance(node, ast.Attribute):
                    names.add(node.attr)
                    if isinstance(node.ctx, ast.Store):
                        stored.add(ast.unparse(node))
                elif isinstance(node, ast.stmt) and self.toggled.reader.read(node) is not None:
                    raise _Unsure
                elif isinstance(node, ast.Call):
                    other = called_function(self.ctx.fact(node.func))
                    if other is not None and other not in seen and isinstance(other.node, FunctionNode):
                        seen.add(other)
                        waiting.append(other)
        return names, stored


def _kept(names: set[str]) -> set[str]:
    """The attributes among variables: they are there when the function is called again."""
    return {name for name in names if "." in name}


def _is_cut(node: ast.expr) -> bool:
    """Whether no gradient flows through a value: ``fake.detach()``, ``loss.item()``."""
    match node:
        case ast.Call(func=ast.Attribute(attr=attr)) | ast.Attribute(attr=attr):
            return attr in _CUTS - {"sample"}  # which a module may have too
    return False
