"""In which mode modules are at a place: whether what sets it stands in front of that, and nothing sets another."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.module_modes import has_modes
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.rule.definitions import Class, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.training.program.flow import is_mode
from t2j_lsp.translate.training.program.named_modules import same_module

_LOOPS = ast.For | ast.While
_INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Modes:
    """Looks for statements that set modes."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    @cached_property
    def make_no_difference(self) -> bool:
        """Whether nothing that the file names computes otherwise in another mode."""
        return not any(map(self._differs, self.ctx.source.nodes))

    def _differs(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "training":
            return True
        fact = self.ctx.fact(node) if isinstance(node, ast.Name | ast.Attribute) else None
        return isinstance(fact, Qual) and fact.name in LAYERS and has_modes(fact.name)

    def differ(self, module: Fact) -> bool:
        """Whether a module may compute otherwise in another mode, as far as its class, its parts and theirs say."""
        match module:
            case Layer(name=name, items=None):
                return name in CONTAINERS or name not in LAYERS or has_modes(name)
            case Layer(items=items):
                return any(map(self.differ, items or ()))
            case Instance(cls=cls):
                classes = cls.info.ancestry()
                nodes = (node for info in classes for node in symbols.walk(info.node))
                held = (fact for info in classes for fact in info.attributes.values() if is_module(fact))
                return (
                    any(info.external for info in classes)
                    or any(map(self._differs, nodes))
                    or any(map(self.differ, held))
                )
        return True

    def is_set_before(
        self,
        place: ast.stmt,
        module: str,
        kind: str,
        until: ast.stmt | None = None,
        apart: Callable[[ast.expr], bool] = lambda _: False,
    ) -> bool:
        """Whether ``model.train()`` stands in front of a statement, and nothing sets another mode between.

        In a block around it, inside of ``until`` or of the function. What runs in a loop from one time to the next
        counts as well. ``kind``: ``"train"`` or ``"eval"``. An ``if`` is a place where its condition doesn't hold.
        ``apart`` says of other modules whether they have no part in common with this one.
        """
        node: ast.AST = place
        replaced = False
        asked = {ast.unparse(place.test): False} if isinstance(place, ast.If) else {}
        for around in with_ancestors(self.ctx.source.parents[place], self.ctx.source.parents):
            block = next((b for b in _blocks(around) if node in b), [])
            for other in reversed(block[: block.index(node)] if isinstance(node, ast.stmt) and node in block else []):
                for run in self._run_then(other, asked):
                    if set_by(run, kind) == module:
                        return True
                    if _gives(run, module) and not replaced and kind == "train" and self._makes(run):
                        return True
                    replaced = replaced or _gives(run, module)
                    if self._may_leave_other(run, module, kind, apart) and set_by(run, kind) is None:
                        return False
            if around is until or isinstance(around, _INNER):
                return False
            if isinstance(around, _LOOPS) and any(self._may_leave_other(s, module, kind, apart) for s in around.body):
                return False
            if isinstance(around, ast.If):
                asked.setdefault(ast.unparse(around.test), node in around.body)
            node = around
        return False

    def _makes(self, node: ast.stmt) -> bool:
        """Whether a statement makes a module, which is in training mode then: no method of a module sets modes."""
        value = node.value if isinstance(node, ast.Assign) else None
        made = self.ctx.fact(value.func) if isinstance(value, ast.Call) else None
        new = isinstance(made, Class) and not any(info.external for info in made.info.ancestry())
        setting = any(info.owner is not None and info.owner.is_module for info in self._setting)
        return new and not setting and not self.changes(node)

    def _may_leave_other(self, node: ast.stmt, module: str, kind: str, apart: Callable[[ast.expr], bool]) -> bool:
        """Whether a module may be in another mode behind a statement than in front of it.

        What functions of the file do that set ``kind`` again at their end is undone: ``estimate_loss()``.
        """
        if not self.changes(node):
            return False
        setters = [n for n in _run(node) if self._sets(n)]
        if isinstance(node, _INNER) or not all(self._is_of_other(n, module, apart) for n in setters):
            return True
        calls = [n for n in _run(node) if isinstance(n, ast.Call)]
        called = {call: called_function(self.ctx.fact(call.func)) for call in calls}
        setting = {call: info for call, info in called.items() if info in self._setting and info is not None}
        names = {info.name for info in setting.values()}
        others = {info for info in self._called(node) if info in self._setting} - {*setting.values()}
        named = [n for n in _run(node) if _name(n) in names]
        if others or len(named) != len(setting):
            return True
        return not all(self._ends_in(info, call, module, kind, apart) for call, info in setting.items())

    def _is_of_other(self, setter: ast.AST, module: str, apart: Callable[[ast.expr], bool]) -> bool:
        """Whether it sets the mode of a module that has no part in common with one: ``student.train()``."""
        match setter:
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner)):
                return owner.id != module and apart(owner)
        return False

    def _ends_in(
        self, info: FunctionInfo, call: ast.Call, module: str, kind: str, apart: Callable[[ast.expr], bool]
    ) -> bool:
        """Whether a function that is called sets a module to a mode, as what it does last with modes."""
        body = info.node.body
        made_by = map(self.ctx.fact, map(symbols.called_decorator, info.node.decorator_list))
        known = all(is_torch(getattr(fact, "name", "")) for fact in made_by)
        if not isinstance(info.node, ast.FunctionDef) or not known or self._catches_errors:
            return False
        last = max((i for i, statement in enumerate(body) if self.changes(statement)), default=None)
        if last is None:
            return False
        restored = self._restores(body, last)
        name = restored or set_by(body[last], kind)
        if name is None:
            return False
        leaves = ast.Return | ast.Yield | ast.YieldFrom
        if any(isinstance(n, leaves) for statement in body[: last + 1] for n in _run(statement)):
            return False
        root, _, rest = name.partition(".")
        if any(isinstance(n, ast.Name) and n.id == root and not isinstance(n.ctx, ast.Load) for n in _run(info.node)):
            return False
        for parameter, value in bound_arguments(call, info):
            if parameter.arg == root and restored and isinstance(value, ast.Name) and apart(value):
                return True
            if parameter.arg == root:
                return ".".join(filter(None, [ast.unparse(value), rest])) == module
        own = info.node.args.args[:1] if info.owner is not None and not info.static else []
        if own and own[0].arg == root:
            return isinstance(call.func, ast.Attribute) and f"{ast.unparse(call.func.value)}.{rest}" == module
        homes = (self._home(name, body[last]), self._home(module, call))
        return name == module and homes == (None, None)

    def _restores(self, body: list[ast.stmt], last: int) -> str | None:
        """The module whose mode, which is the only one that a function sets, is at its end as it was before.

        ``was_training = model.training``, ``model.eval()``, ..., ``model.train(was_training)``.
        """
        match body[last]:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=module), attr="train"), args=[ast.Name(id=kept)], keywords=[]
                )
            ):
                pass
            case _:
                return None
        first = next(i for i, statement in enumerate(body) if self.changes(statement))
        given = [s for s in body[:first] if ast.unparse(s) == f"{kept} = {module}.training"]
        stores = [n for s in body for n in _run(s) if _name(n) == kept and not isinstance(_context(n), ast.Load)]
        setting = {ast.unparse(s) for s in body[:last] if self.changes(s)}
        alone = setting <= {f"{module}.eval()", f"{module}.train()"}
        return module if len(given) == len(stores) == 1 and alone else None

    @cached_property
    def _catches_errors(self) -> bool:
        """Whether the file may go on behind an error, which leaves functions before their ends."""
        caught = [n.body for n in self.ctx.source.nodes if isinstance(n, ast.Try | ast.TryStar) and n.handlers]
        return any(not isinstance(s, ast.Import | ast.ImportFrom | ast.Assign) for body in caught for s in body)

    def _home(self, name: str, place: ast.AST) -> ast.AST | None:
        """The function that binds a variable, as it is read at a place; None for the module level."""
        scopes = symbols.scopes_around(place, self.ctx.source.parents)
        return self.ctx.source.symbols.home(name.partition(".")[0], scopes)

    def _run_then(self, node: ast.stmt, asked: Mapping[str, bool]) -> Iterator[ast.stmt]:
        """A statement, or those that run of one that asks what is asked again around a place, from the last one."""
        if isinstance(node, ast.If) and (holds := asked.get(ast.unparse(node.test))) is not None:
            if self._stays(node.test, node):
                yield from reversed(node.body if holds else node.orelse)
                return
        yield node

    def _stays(self, test: ast.expr, place: ast.stmt) -> bool:
        """Whether a condition is one on variables that have the same values until the loops around a place go on."""
        parts = ast.Name | ast.Constant | ast.Compare | ast.UnaryOp | ast.cmpop | ast.unaryop | ast.expr_context
        if not all(isinstance(n, parts) for n in ast.walk(test)):
            return False
        around = (at for at in ancestors(place, self.ctx.source.parents) if isinstance(at, ast.For))
        targets = {n for loop in around for n in symbols.walk(loop.target)}
        asked = {(n.id, self.ctx.source.home(n)) for n in symbols.walk(test) if isinstance(n, ast.Name)}
        return not any(
            (n.id, self.ctx.source.home(n)) in asked and n not in targets
            for n in self.ctx.source.nodes
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        )

    def changes(self, node: ast.stmt) -> bool:
        """Whether a statement sets a mode of some module, or calls a function that does."""
        if isinstance(node, _INNER):
            return False
        return any(map(self._sets, _run(node))) or any(info in self._setting for info in self._called(node))

    def _sets(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr="train" | "eval", value=owner)):
                return is_mode(ast.Expr(node)) or is_module(self.ctx.fact(owner))
        return False

    @cached_property
    def _setting(self) -> set[FunctionInfo]:
        """The functions of the file that set modes, or call others that do."""
        functions = [*self.ctx.inference.functions.values()]
        out = {info for info in functions if any(map(self._sets, symbols.walk(info.node)))}
        while more := {info for info in functions if info not in out and not out.isdisjoint(self._called(info.node))}:
            out |= more
        return out

    def _called(self, node: ast.AST) -> Iterator[FunctionInfo]:
        """The functions of the file that some code names: what it calls, and what may be called by others."""
        nodes = [*symbols.walk(node)]
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        names |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        yield from (info for info in self.ctx.inference.functions.values() if info.name in names)
        called = (called_function(self.ctx.fact(n.func)) for n in nodes if isinstance(n, ast.Call))
        yield from (info for info in called if info is not None)


def set_by(node: ast.stmt, kind: str) -> str | None:
    """The module that a statement sets to a mode: ``model`` of ``model.train()``, or of ``model = model.train()``."""
    match node:
        case ast.Assign(targets=[target], value=ast.Call() as call) if ast.unparse(target) == set_by(
            ast.Expr(call), kind
        ):
            return ast.unparse(target)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr, value=module), args=[], keywords=[])) if (
            attr == kind
        ):
            return ast.unparse(module)
    return None


def _gives(node: ast.stmt, module: str) -> bool:
    """Whether a statement gives a variable another module: ``model = model.to(device)`` is the same."""
    if not isinstance(node, ast.Assign) or module not in map(ast.unparse, node.targets):
        return False
    return ast.unparse(same_module(node.value)) != module


def _name(node: ast.AST) -> str | None:
    """What a node names: ``estimate`` of ``estimate`` and of ``self.estimate``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _context(node: ast.AST) -> ast.expr_context:
    context: ast.expr_context = getattr(node, "ctx", ast.Load())
    return context


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The code of a statement, without that of functions and classes in it."""
    yield node
    for child in symbols.children(node):
        if not isinstance(child, _INNER):
            yield from _run(child)
