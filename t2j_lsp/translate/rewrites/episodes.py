"""Policy gradients whose loss is made of what an episode kept: ``policy.saved_log_probs.append(m.log_prob(action))``.

Acting stands between steps of an environment, so the episode can't be one compiled function, and a gradient that is
traced through it costs more than PyTorch's. What acts is compiled by itself instead, and keeps the way back to the
parameters for each of its calls, as PyTorch's graph does: the gradients are those at the parameters that acted, with
the masks that were drawn, whatever came between (docs/decisions/train-steps.md).

This holds where the module is seen at every place of the file, and the kept values are all that a gradient could come
through. `find` answers None for the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Object, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.training.program.step_calls import Reader, clip_of
from t2j_lsp.translate.training.program.trees import Trees
from t2j_lsp.translate.training.steps.jittable import Jittable

from .episode_parts import (
    ActingFunction,
    KeptList,
    RecordedEpisode,
    Unseen,
    appends,
    called_attribute,
    is_docstring,
    names,
    need,
    reads,
    stores,
    to_host,
)
from .episode_update import UpdateCheck

NEEDS = Gate(words=frozenset({"log_prob"}))
_MODES = frozenset({"train", "eval", "state_dict", "load_state_dict"})
_SWITCHED = frozenset({"set_grad_enabled", "inference_mode", "enable_grad", "deepcopy", "setattr", "getattr", "vars"})
_OF_DISTRIBUTIONS = frozenset({"log_prob", "entropy"})


def find(context: Context) -> RecordedEpisode | None:
    """The policy gradient of a file; None if it has none that is surely understood."""
    words = context.source.words
    if not {"backward", "append", "parameters", "step"} <= words or _SWITCHED & words:
        return None
    try:
        return _EpisodeFinder(context).episode()
    except Unseen:
        return None


class _EpisodeFinder:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.inference, self.source = context.inference, context.source
        self.parents = self.source.parents

    def episode(self) -> RecordedEpisode:
        """Raises Unseen."""
        backward = self.source.attributes.get("backward", [])
        need(len(backward) == 1)
        call = self.parents.get(backward[0])
        statement = self.parents.get(call) if call is not None else None
        update = self.parents.get(statement) if statement is not None else None
        need(isinstance(call, ast.Call) and not call.args and not call.keywords and isinstance(statement, ast.Expr))
        need(self._is_plain(update))
        assert isinstance(update, ast.FunctionDef) and isinstance(statement, ast.Expr)
        at = update.body.index(statement)
        clip = self._clip(update.body[at + 1]) if at + 1 < len(update.body) else None
        behind = at + 1 + (clip is not None)
        step = update.body[behind] if behind < len(update.body) else None
        need(sum(isinstance(n, ast.Call) and self._is_clip(n) for n in self.source.nodes) == (clip is not None))
        optimizer = called_attribute(step.value, "step") if isinstance(step, ast.Expr) else None
        need(isinstance(optimizer, ast.Name) and self._is_optimizer(optimizer))
        assert isinstance(optimizer, ast.Name) and isinstance(step, ast.Expr)
        module, made = self._module(optimizer.id)
        zeroing = [s for s in update.body if self._zeroes(s, optimizer.id, module)]
        need(len(zeroing) == 1 and update.body.index(zeroing[0]) < at)
        self._check_optimizer(optimizer.id, [step, *zeroing])
        need(sum(isinstance(n, ast.Call) and self._is_constructor(n) for n in self.source.nodes) == 1)
        info = self._class(module)
        lists = self._lists(module, info)
        node = self._calling(module, [one for kept in lists for one in kept.uses], made)
        need(node is not update)
        self._check_calls(node, update)
        self._check_module(module, info, {one.name for one in lists if one.in_module})
        acting = self._acting(node, module)
        self._record(acting, lists)
        lists = [one for one in lists if one.in_module or one.item is not None]
        block = [s for s in update.body[:at] if s not in zeroing and not is_docstring(s, update)]
        rest = update.body[behind + 1 :]
        episode = RecordedEpisode(
            module, made, optimizer.id, lists, acting, update, backward[0].value, block, zeroing, statement, step, rest
        )
        if clip is not None:
            need(not any(n.id in stores(s) for n in reads(clip.args[1]) for s in block))
            episode.clip = clip.args[1]
        need(episode.recorded)
        UpdateCheck(self.inference, episode).check()
        return episode

    def _is_plain(self, node: ast.AST | None) -> bool:
        """Whether it is a function of the module level without decorators."""
        plain = isinstance(node, ast.FunctionDef) and not node.decorator_list and node in self.source.tree.body
        return plain and not any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in symbols.walk(node))  # type: ignore[arg-type]

    def _is_optimizer(self, node: ast.expr) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Object) and fact.kind == "optimizer"

    def _zeroes(self, node: ast.stmt, optimizer: str, module: str) -> bool:
        owner = called_attribute(node.value, "zero_grad") if isinstance(node, ast.Expr) else None
        return isinstance(owner, ast.Name) and owner.id in (optimizer, module)

    def _clip(self, node: ast.stmt) -> ast.Call | None:
        """``clip_grad_norm_(policy.parameters(), 1.0)``."""
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not self._is_clip(call) or call.keywords or len(call.args) != 2:
            return None
        return call if called_attribute(call.args[0], "parameters") is not None else None

    def _is_clip(self, call: ast.Call) -> bool:
        """Whether a call clips gradients by their norm."""
        return clip_of(getattr(self.inference.fact(call.func), "name", "")) == "norm"

    # --- module and optimizer -------------------------------------------------------------------------------------

    def _named(self, name: str) -> list[ast.Name]:
        return [n for n in self.source.nodes if isinstance(n, ast.Name) and n.id == name]

    def _made_once(self, name: str) -> ast.Assign:
        """The statement of the module level that alone gives a variable its value. Raises Unseen."""
        stores = [n for n in self._named(name) if not isinstance(n.ctx, ast.Load)]
        bound = [i for i in self.inference.functions.values() if name in self.source.symbols.bound(i.node)]
        need(len(stores) == 1 and not bound)
        statement = self.parents.get(stores[0])
        need(isinstance(statement, ast.Assign) and statement in self.source.tree.body)
        assert isinstance(statement, ast.Assign)
        need(len(statement.targets) == 1 and self.source.starts_line(statement))
        return statement

    def _module(self, optimizer: str) -> tuple[str, ast.Assign]:
        """The module whose parameters alone an optimizer is given. Raises Unseen."""
        made = self._made_once(optimizer).value
        need(isinstance(made, ast.Call) and made.args and not any(isinstance(a, ast.Starred) for a in made.args))
        assert isinstance(made, ast.Call)
        owner = called_attribute(made.args[0], "parameters")
        need(isinstance(owner, ast.Name))
        assert isinstance(owner, ast.Name)
        need(isinstance(self.inference.fact(made.func), Qual))
        return owner.id, self._made_once(owner.id)

    def _check_optimizer(self, name: str, statements: list[ast.stmt]) -> None:
        """Raises Unseen if it is used by anything but the update."""
        loads = [n for n in self._named(name) if isinstance(n.ctx, ast.Load)]
        inside = {n for s in statements for n in symbols.walk(s)}
        need(all(n in inside for n in loads))

    def _class(self, module: str) -> ClassInfo:
        fact = self.inference.fact(next(n for n in self._named(module) if isinstance(n.ctx, ast.Load)))
        need(isinstance(fact, Instance) and is_module(fact) and not fact.cls.info.external)
        assert isinstance(fact, Instance)
        return fact.cls.info

    def _check_module(self, module: str, info: ClassInfo, lists: set[str]) -> None:
        """Raises Unseen unless it is a tree that compiled code may be given."""
        places: list[ast.expr] = [n for n in self._named(module) if isinstance(n.ctx, ast.Load)]
        need(Trees(self.context).are_passed(places, ""))
        need(self._jittable.module_problem(self.inference.fact(places[0])) is None)
        for one in info.ancestry():
            for name, fact in one.attributes.items():
                need(name in lists or is_module(fact) or isinstance(fact, Tensor | Scalar))

    @cached_property
    def _jittable(self) -> Jittable:
        return Jittable(self.inference, Reader(self.inference, self.context.plan.switches), (), {})

    # --- lists ----------------------------------------------------------------------------------------------------

    def _lists(self, module: str, info: ClassInfo) -> list[KeptList]:
        """The attributes of the module that are lists, which only code outside of its class uses. Raises Unseen."""
        init = info.methods.get("__init__")
        need(init is not None and len(list(info.ancestry())) == 1)
        assert init is not None
        lists = []
        for statement in init.node.body:
            match statement:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.List(elts=[])
                ) if self.source.starts_line(statement):
                    uses = self.source.attributes.get(name, [])
                    uses.remove(statement.targets[0])  # type: ignore[arg-type]
                    need(all(isinstance(n.value, ast.Name) and n.value.id == module for n in uses))
                    need(all(isinstance(n.ctx, ast.Load) for n in uses))
                    lists.append(KeptList(name, list(uses), statement))
        lists += self._lists_beside()
        for kept in lists:
            need(not any(isinstance(n, ast.arg) and n.arg == kept.name for n in self.source.nodes))
        return lists

    def _lists_beside(self) -> list[KeptList]:
        """The lists of the module level that are made empty, once."""
        lists = []
        for statement in self.source.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                    named = self._named(name)
                    uses: list[ast.expr] = [n for n in named if isinstance(n.ctx, ast.Load)]
                    bound = any(name in self.source.symbols.bound(i.node) for i in self.inference.functions.values())
                    if len(uses) == len(named) - 1 and not bound:
                        lists.append(KeptList(name, uses, statement))
        return lists

    def _calling(self, module: str, uses: list[ast.expr], made: ast.Assign) -> ast.FunctionDef:
        """The one function that calls the module, of which nothing else takes gradients. Raises Unseen."""
        lists = {n.value for n in uses if isinstance(n, ast.Attribute)}
        callers: set[ast.FunctionDef] = set()
        for node in self._named(module):
            if node in lists or not isinstance(node.ctx, ast.Load):
                continue
            parent = self.parents.get(node)
            if isinstance(parent, ast.Attribute):
                call = self.parents.get(parent)
                called = isinstance(call, ast.Call) and call.func is parent
                need(called and (parent.attr in _MODES or parent.attr in ("parameters", "zero_grad")))
                if parent.attr == "parameters":
                    holder = self.parents.get(call) if call is not None else None
                    need(isinstance(holder, ast.Call) and (self._is_constructor(holder) or self._is_clip(holder)))
                continue
            need(isinstance(parent, ast.Call) and parent.func is node)
            around = list(ancestors(node, self.parents))
            need(self._is_plain(around[-2]) and not any(isinstance(n, ast.Lambda | ast.With) for n in around))
            callers.add(around[-2])  # type: ignore[arg-type]
        need(len(callers) == 1)
        return callers.pop()

    def _check_calls(self, node: ast.FunctionDef, update: ast.FunctionDef) -> None:
        """Raises Unseen if a function is used as a value, without gradients, or by the update."""
        for name in self._named(node.name):
            parent = self.parents.get(name)
            around = list(ancestors(name, self.parents))
            need(isinstance(parent, ast.Call) and parent.func is name)
            need(not any(isinstance(a, ast.With | ast.Lambda) or a is update for a in around))

    def _is_constructor(self, node: ast.Call) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Object) and fact.kind == "optimizer"

    # --- what acts ------------------------------------------------------------------------------------------------

    def _acting(self, node: ast.FunctionDef, module: str) -> ActingFunction:
        """The statements that are compiled, and those behind them. Raises Unseen."""
        body = [s for s in node.body if not is_docstring(s, node)]
        end = next((i for i, s in enumerate(body) if not self._compiles(s)), len(body))
        start = 0
        if not all(self._is_array_or_tensor(n) for s in body[:end] for n in self._converted(s)):
            start = next((i for i, s in enumerate(body[:end]) if names(s, module)), end)
            need(all(self._is_array_or_tensor(n) for s in body[start:end] for n in self._converted(s)))
        compiled, tail = body[start:end], body[end:]
        need(compiled and tail and any(names(s, module) for s in compiled))
        need(not any(names(s, module) for s in (*body[:start], *tail) if not appends(s)))
        need(self.source.starts_line(compiled[0]) and all(self.source.starts_line(s) for s in tail))
        bound: set[str] = set()
        inputs: list[str] = []
        own = self.source.symbols.bound(node)
        for statement in compiled:
            for name in reads(statement):
                if name.id in own and name.id not in bound and name.id not in inputs:
                    given = isinstance(self.inference.fact(name), Tensor) or self._is_array(name)
                    need(given or self._is_converted(name))
                    inputs.append(name.id)
                elif name.id not in own:
                    self._check_outside(name, module)
            bound |= stores(statement)
        return ActingFunction(node, compiled, tail, inputs)

    def _compiles(self, node: ast.stmt) -> bool:
        if not isinstance(node, ast.Assign):
            return False
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            if not all(isinstance(one, ast.Name) for one in names):
                return False
        if any(isinstance(n, ast.Lambda | ast.IfExp | ast.comprehension | ast.NamedExpr) for n in symbols.walk(node)):
            return False
        return self._jittable.problem(node) is None

    def _converted(self, node: ast.stmt) -> Iterator[ast.expr]:
        """What library functions make tensors of."""
        for call in (n for n in symbols.walk(node) if isinstance(n, ast.Call)):
            fact = self.inference.fact(call.func)
            if isinstance(fact, Qual) and is_torch(fact.name) and call.args:
                value = call.args[0]
                if not isinstance(self.inference.fact(value), Tensor) and not self._is_converted(value):
                    yield from (a for a in call.args if isinstance(a, ast.Name | ast.List | ast.Tuple))

    def _is_converted(self, node: ast.expr) -> bool:
        """Whether a function that takes nothing but numpy arrays is given it."""
        call = self.parents.get(node)
        fact = self.inference.fact(call.func) if isinstance(call, ast.Call) else None
        return isinstance(fact, Qual) and fact.name in names_with(Trait.OF_NUMPY)

    def _is_array(self, node: ast.expr) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Object) and fact.kind == "array"

    def _is_array_or_tensor(self, node: ast.expr) -> bool:
        return isinstance(self.inference.fact(node), Tensor) or self._is_array(node)

    def _check_outside(self, name: ast.Name, module: str) -> None:
        """Raises Unseen unless what is read from outside stays as it is."""
        fact = self.inference.fact(name)
        if name.id == module or isinstance(fact, Qual):
            return
        need(name.id not in self.source.symbols.bound_again)
        info: FunctionInfo | None = getattr(fact, "info", None)
        if isinstance(info, FunctionInfo):
            need(not any(is_module(self.inference.fact(n)) for n in symbols.walk(info.node) if isinstance(n, ast.Name)))
            need(not any(isinstance(n, ast.Global) for n in symbols.walk(info.node)))
            return
        need(isinstance(fact, Scalar | Class) or name.id not in self.source.symbols.module)

    def _record(self, acting: ActingFunction, lists: list[KeptList]) -> None:
        """Find what the tail keeps and takes to the host of what is compiled. Raises Unseen."""
        made = {name for s in acting.compiled for name in stores(s)}
        seen: set[ast.AST] = set()
        for statement in acting.tail:
            if appends(statement):
                call = statement.value  # type: ignore[attr-defined]
                kept = next((one for one in lists if call.func.value in one.uses), None)
                if kept is not None and any(n.id in made for n in reads(call.args[0])):
                    need(kept.item is None and all(self._differentiable(p, acting) for p in self.parts(call.args[0])))
                    kept.item = call.args[0]
                    seen |= set(symbols.walk(statement))
        for statement in acting.tail:
            need(not stores(statement) & made)
            for name in (n for n in reads(statement) if n.id in made and n not in seen):
                place = next((a for a in ancestors(name, self.parents) if to_host(a)), None)
                need(place is not None and statement in ancestors(place, self.parents))
                assert isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute)
                value = place.func.value
                need(all(n.id in made or isinstance(self.inference.fact(n), Qual) for n in reads(value)))
                need(isinstance(self.inference.fact(value), Tensor))
                acting.taken.setdefault(ast.unparse(value), []).append(value)
                seen |= set(symbols.walk(value))

    def parts(self, item: ast.expr) -> list[ast.expr]:
        """The arrays of an item: those of a tuple, or of a named one."""
        match item:
            case ast.Tuple(elts=elts):
                return elts
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if self._jittable.makes_tuple(name):
                return args
        return [item]

    def _differentiable(self, node: ast.expr, acting: ActingFunction) -> bool:
        """Whether it is a log probability, an entropy, or what the module gives."""
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _OF_DISTRIBUTIONS:
                return self._jittable.problem(node) is None
            case ast.Name(id=name):
                values = [s.value for s in acting.compiled if isinstance(s, ast.Assign) and name in stores(s)]
                return len(values) == 1 and (
                    self._calls_module(values[0])
                    or not isinstance(values[0], ast.Name)
                    and self._differentiable(values[0], acting)
                )
        return False

    def _calls_module(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and is_module(self.inference.fact(node.func))
        )
