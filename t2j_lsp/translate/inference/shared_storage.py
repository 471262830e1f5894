"""In-place writes that another name can see, here or where the function was called.

``y = x[0]; y += 1`` changes ``x`` in PyTorch and leaves it alone in JAX. This pass follows, in source order, which
names of a function share storage, and finds the writes after which a sharing name is read. A write into a parameter
whose value is never read afterwards is for the caller, who doesn't see it in JAX.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Layer, Tensor
from t2j_lsp.translate.source.evaluation import evaluated_once
from t2j_lsp.translate.source.syntax import IN_PLACE, STORED

from .file import Inference
from .fillers import written_for
from .gates import Gate
from .given_arrays import GivenArrays
from .lost_items import writes_into_items, written_arrays
from .module_states import copied_into
from .numpy_memory import TENSOR, NumpyMemory, numpy_targets, other_side
from .optimizer_steps import stays_variable, stepping_functions, steps
from .places import NOWHERE, Env, Reached, is_state, joined, made_by, overlap
from .statement_reads import (
    calls_of,
    flatten,
    gives_keys,
    loads,
    parts_of,
    statements_after,
    stored,
    targets_of,
)
from .storage import ADDING, FROM_NUMPY, TO_NUMPY, Storage, dotted, root
from .written_parameters import (
    IN_CALL,
    SharedWrites,
    Write,
    is_read_beside,
    is_used_before,
    only_rectifies,
    sets_flag,
    written_by_call,
)

NEEDS = Gate(
    kinds=frozenset({ast.AugAssign}),
    words=frozenset({STORED, IN_PLACE, "inplace", "numpy", "out"}),
    facts=frozenset({Layer}),
    names=(FROM_NUMPY,),
    objects=frozenset({"optimizer"}),
)
"""Writes; a layer may have been built to write in place, and an optimizer writes into parameters."""
_READ = "PyTorch writes in place here, and {!r}, read later, shares the memory; in JAX it keeps its value"
_STATE = (
    "PyTorch writes into the module whose state dict this is, JAX into a copy: change the dict's entries, and load it"
)
_SNAPSHOT = (
    "PyTorch's optimizer writes into the memory that {!r} shares with a parameter; in JAX it keeps the values from"
    " before: read the parameter where it is needed, or copy it by clone()"
)


def shared_writes(inference: Inference) -> SharedWrites:
    """The writes of a file into shared storage.

    Where a function names JAX, it was converted before: what it writes to are arrays.
    """
    written: dict[FunctionInfo, set[str]] = {}
    while True:
        known = {info: set(names) for info, names in written.items()}
        writes = _known_writes(inference, written)
        if written == known:
            return writes


def _known_writes(inference: Inference, written: dict[FunctionInfo, set[str]]) -> SharedWrites:
    """What they come to as far as it is known which parameters functions write into; what is found out is added."""
    wanted, stepping, memory = written_for(inference), stepping_functions(inference), NumpyMemory()
    writes = SharedWrites(copied=memory.copied)
    infos = [info for info in inference.functions.values() if not inference.names_jax(info)]
    runs: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, set[str]]]
    runs = [(info.node, wanted.get(info, set())) for info in infos]
    for node, asked in (*runs, *([] if inference.has_jax else [(inference.source.tree, set[str]())])):
        function = _Function(inference, node, asked, memory, stepping, written)
        writes.statements.update(function.find())
        writes.snapshots.update(function.outdated)
        writes.rectified.update(function.rectified)
        writes.seen.update(function.arrays.seen())
        memory.note_sources(function.storage)
    for statement, reason in memory.seen_writes().items():
        writes.statements.setdefault(statement, reason)
    if not inference.has_jax:
        for statement, reason in writes_into_items(inference):
            writes.statements.setdefault(statement, reason)
    return writes


class _Function:
    """One function or the module level, run with what its names hold.

    Each loop runs twice: the second round sees what the first left.
    """

    def __init__(
        self,
        inference: Inference,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module,
        written_for: set[str],
        memory: NumpyMemory,
        stepping: set[FunctionInfo],
        written: dict[FunctionInfo, set[str]],
    ) -> None:
        self.inference = inference
        self.storage = Storage(inference.facts)
        self.node = node
        info = None if isinstance(node, ast.Module) else inference.functions[node]
        self.info, self.written = info, written
        self.statements = list(flatten(node.body))
        self.arrays = GivenArrays(inference, info, written_for, self.statements)
        self.given = self.arrays.names
        self.bound = {name for statement in self.statements for name in stored(statement)}
        self.memory = memory
        self.stepping = stepping
        self.snapshots: dict[str, ast.stmt] = {}
        """Names that hold what an optimizer writes into, as arrays, and where they got it."""
        self.writes: dict[ast.stmt, str] = {}
        self.outdated: dict[ast.stmt, str] = {}
        self.rectified: dict[ast.stmt, str] = {}

    def find(self) -> dict[ast.stmt, str]:
        changed = any(isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) for s in self.statements)
        writes = changed or self._writes()
        touched = ((*written_arrays(s, self.inference), *self._in_calls(s)) for s in self.statements)
        if writes or any(touched):
            self._block(self.node.body, {name: made_by(name) for name in self.given})
        return self.writes

    def _writes(self) -> bool:
        """Whether it writes into parameters or arrays of NumPy, or hands such out."""
        asked = TO_NUMPY | {name.rpartition(".")[2] for name in FROM_NUMPY}
        if not self.inference.source.words.isdisjoint(asked):
            return True
        return any(steps(call, self.inference, self.stepping) for s in self.statements for call in calls_of(s))

    # --- running ----------------------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], env: Env) -> Env | None:
        """What names hold behind statements; None where nothing comes behind them."""
        after: Env | None = env
        for node in body:
            if after is None:
                return None
            after = self._statement(node, after)
        return after

    def _statement(self, node: ast.stmt, env: Env) -> Env | None:
        self._check(node, env)
        match node:
            case ast.If():
                return joined(self._block(node.body, dict(env)), self._block(node.orelse, dict(env)))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, env)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self.storage.bind(item.optional_vars, self.storage.fresh(), env)
                return self._block(node.body, env)
            case ast.Try() | ast.TryStar():
                done = self._block([*node.body, *node.orelse], dict(env))
                for handler in node.handlers:
                    done = joined(done, self._block(handler.body, dict(joined(env, done) or env)))
                return self._block(node.finalbody, done) if done is not None else None
            case ast.Match():
                ends = [self._block(case.body, dict(env)) for case in node.cases]
                for end in ends:
                    env = joined(env, end) or env
                return env
            case ast.Return(value=ast.expr() as value) if not isinstance(self.node, ast.Module):
                held = self.storage.of(value, env)
                self.memory.returns(self.inference.functions[self.node], value, held, self.storage)
                self.arrays.returned |= held
                return None
            case ast.Return() | ast.Raise():
                return None
        self._bind(node, env)
        return env

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> Env | None:
        for _ in range(2):
            inside = dict(env)
            if not isinstance(node, ast.While):
                rows = self.storage.fresh() if gives_keys(node) else self.storage.elements(node.iter, inside)
                self.storage.bind(node.target, rows, inside)
            env = joined(env, self._block(node.body, inside)) or env
        return self._block(node.orelse, env)

    def _bind(self, node: ast.stmt, env: Env) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                held = self.storage.named(value, env)
                for target in targets:
                    self.storage.bind(target, held, env)
                    self.memory.bound(target, value, self.storage, env)
                    self._keep(dotted(target), value, held, node)
                    if isinstance(target, ast.Subscript):
                        self._keep(dotted(target.value), value, held, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.storage.bind(target, self.storage.of(value, env), env)
            case ast.AugAssign(target=target, value=value) if text := dotted(target) and root(target):
                before, new = self.storage.of(target, env), self.storage.of(value, env)
                if isinstance(self.inference.facts.get(target), Tensor):
                    env[text] = before if before.reach() else self.storage.fresh()
                else:  # a list gets the items of another
                    env[text] = before.added(None, new.item()) if new.reach() else before
            case ast.Expr(value=ast.Call() as call):
                self.storage.put_by(call, env)
                if isinstance(call.func, ast.Attribute) and call.func.attr in ADDING and call.args:
                    item = call.args[-1]
                    self._keep(dotted(call.func.value), item, self.storage.of(item, env), node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                env[node.name] = self.storage.fresh()

    def _keep(self, name: str, value: ast.expr, held: Reached, node: ast.stmt) -> None:
        """A name, or an item of what it holds, is given what may be an array that an optimizer writes into."""
        trained = any(owner in self.storage.trained for owner, _ in held.reach())
        if name and trained and not stays_variable(value, self.inference.facts):
            self.snapshots[name] = node
        elif isinstance(node, ast.Assign) and name in map(dotted, node.targets):
            self.snapshots.pop(name, None)

    # --- judging ----------------------------------------------------------------------------------------------------

    def _check(self, node: ast.stmt, env: Env) -> None:
        """Whether a statement writes into what is read later by another name, or is the caller's."""
        self._check_numpy(node, env)
        self._check_steps(node, env)
        for target in written_arrays(node, self.inference):
            new = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            written = root(target)
            stored_there = any(isinstance(part, ast.Subscript) and root(part) == written for part in targets_of(node))
            elsewhere = new and not stored_there and dotted(node.targets[0]) != written  # type: ignore[attr-defined]
            write = Write(written, self.storage.of(target, dict(env)), elsewhere)
            call = self.inference.source.parents.get(target)
            flag = isinstance(node, ast.Expr) and isinstance(call, ast.Attribute) and call.attr == "requires_grad_"
            shared = None if flag else self._read_beside(call, write, node, env) or self._read_later(write, node, env)
            if not sets_flag(call):
                self._note_written(write)
            if copied_into(self.inference.source, self.inference.fact, node) is not None:
                continue
            if is_state(write.held):
                self.writes[node] = _STATE
            elif shared is not None and self._may_be_rectified(call, node, env):
                self.rectified[node] = shared
            elif shared is not None:
                self.writes[node] = _READ.format(shared)
            elif (lost := self.arrays.lost(write, node, env, sets_flag(call))) is not None:
                self.writes.setdefault(node, lost)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            held = self.storage.of(node.target, dict(env))
            self._note_written(Write(node.target.id, held, False))
            if (lost := self.arrays.lost_if_array(node, held, env)) is not None:
                self.writes.setdefault(node, lost)
        for call, argument in self._in_calls(node):
            write = Write(root(argument), self.storage.of(argument, dict(env)), True)
            shared = self._read_beside(call, write, node, env) or self._read_later(write, node, env)
            self._note_written(write)
            if shared is not None and self._may_be_rectified(call, node, env):
                self.rectified[node] = shared
            elif shared is not None:
                self.writes.setdefault(node, IN_CALL.format(shared))

    def _may_be_rectified(self, call: ast.AST | None, node: ast.stmt, env: Env) -> bool:
        """Whether a line in front of a statement may do what its call does in place: to a name that alone has it."""
        if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Name):
            return False
        name, source = call.args[0].id, self.inference.source
        if not only_rectifies(call, self.inference) or not isinstance(node, ast.Return | ast.Assign):
            return False
        once = source.starts_line(node) and evaluated_once(call, source.parents)
        if not once or is_used_before(call, name, node, source.parents):
            return False
        write = Write(name, self.storage.of(call.args[0], dict(env)), False)
        others = {n: held for n, held in env.items() if n != name}
        return self._read_beside(call, write, node, others) is None and self._read_later(write, node, others) is None

    def _read_beside(self, call: ast.AST | None, write: Write, node: ast.stmt, env: Env) -> str | None:
        """A name that holds the storage and is used behind a call, in its statement."""
        if not isinstance(call, ast.Call):
            return None
        names = (n for n, held in env.items() if overlap(held.reach(), write.held.reach()))
        return next((n for n in names if is_read_beside(call, n, node, self.inference.source.parents)), None)

    def _in_calls(self, node: ast.stmt) -> Iterator[tuple[ast.Call, ast.expr]]:
        """The calls of a statement that write into an argument without giving it back, and the argument."""
        for call in calls_of(node):
            yield from ((call, argument) for argument in written_by_call(call, self.written, self.inference))

    def _note_written(self, write: Write) -> None:
        """A write into a parameter is one that callers see."""
        owners = {str(owner) for owner, _ in write.held.reach() if owner in self.given}
        if owners and self.info is not None:
            self.written.setdefault(self.info, set()).update(owners)

    def _check_numpy(self, node: ast.stmt, env: Env) -> None:
        """Whether a statement writes into an array of NumPy whose memory a tensor shares."""
        for target in numpy_targets(node, self.inference.facts):
            held = self.storage.of(target, dict(env))
            if calls := self.memory.writes(node, target, held, self.storage):
                shared = self._read_later(Write("", held, False), node, other_side(env, held))
                if shared is not None:
                    self.writes[node] = TENSOR.format(shared)
                else:
                    self.memory.copied.update(calls)

    def _check_steps(self, node: ast.stmt, env: Env) -> None:
        """Whether a statement writes into parameters whose values a name has kept, and is read for later."""
        if not self.snapshots or not any(steps(c, self.inference, self.stepping) for c in calls_of(node)):
            return
        for name, made in self.snapshots.items():
            held = env.get(name, NOWHERE)
            places = frozenset(p for p in held.reach() if p[0] in self.storage.trained)
            if places and self._read_later(Write("", Reached(places), False), node, {name: held}) is not None:
                self.outdated[made] = _SNAPSHOT.format(name)

    def _read_later(self, write: Write, node: ast.stmt, env: Env) -> str | None:
        """A name that may hold the storage and is read after ``node`` before it is bound again."""
        places = write.held.reach()
        bound = {dotted(target) for target in targets_of(node)}
        for name, held in env.items():
            if name in bound or name == write.root and not write.elsewhere or not overlap(held.reach(), places):
                continue
            owner = name.partition(".")[0]
            if "." in name and (owner in self.given or owner not in self.bound):
                return name  # an object that outlives the function
            rest = statements_after(node, self.node, self.inference.source)
            if owner in self.global_reads or self._is_read(owner, rest):
                return name
        return None

    @cached_property
    def global_reads(self) -> frozenset[str]:
        """Names of the module level that functions read, where this is the module level: they may be called later."""
        if not isinstance(self.node, ast.Module):
            return frozenset()
        names: set[str] = set()
        for info in self.inference.functions.values():
            if not info.external:
                loaded = {
                    n.id for n in symbols.walk(info.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
                }
                names |= loaded - self.inference.source.symbols.bound(info.node)
        return frozenset(names)

    def _is_read(self, name: str, rest: Iterator[ast.stmt]) -> bool:
        for later in rest:
            if any(loads(part, name) for part in parts_of(later)):
                return True
            if name in stored(later):
                return False
        return False
