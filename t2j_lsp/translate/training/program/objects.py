"""Which modules an optimizer updates: from its constructor, through arguments and attributes, to its steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from t2j_lsp import symbols
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.source.assignments import one_by_one
from t2j_lsp.translate.source.positions import are_alternatives

from .holders import Holders
from .last_values import given_last, is_filled
from .named_modules import base_module, same_module, targets
from .trained_variables import TrainedVariables
from .trees import Trees

DEPTH = 5


@dataclass(frozen=True)
class VariableScope:
    """Where a variable is looked up: a function, or the module level where it is None."""

    function: FunctionInfo | None

    @property
    def node(self) -> ast.AST | None:
        return self.function.node if self.function is not None else None

    @property
    def functions(self) -> Iterator[FunctionInfo]:
        """The function and those that it stands in, the nearest first."""
        yield from self.function.with_outer() if self.function is not None else ()


@dataclass(frozen=True)
class Parameters:
    """Whose parameters an optimizer is given, as expressions of one scope."""

    modules: tuple[str, ...]


class Objects:
    """Resolves names of optimizers and of their parameters within a file."""

    def __init__(self, context: Context) -> None:
        self.ctx = context
        self.tree = context.source.tree
        self._assigned: dict[ast.AST | None, dict[str, list[ast.expr]]] = {}
        """The values that names are given, by the function in which they are."""
        self._statements: dict[ast.AST | None, list[ast.stmt]] = {}
        self._scopes: dict[ast.AST, VariableScope] = {}
        self.looking: dict[type, Any] = {}
        """What else looks at the same file, made once each."""

    # --- where things are ---------------------------------------------------------------------------------------

    def scope(self, node: ast.AST) -> VariableScope:
        """The function around a node."""
        below: list[ast.AST] = []
        scope: VariableScope | None = None
        for at in with_ancestors(node, self.ctx.source.parents):
            below.append(at)
            scope = self._scopes.get(at)
            if scope is None and (info := self.ctx.inference.functions.get(at)) is not None:
                scope = VariableScope(info)
            if scope is not None:
                break
        scope = scope or VariableScope(None)
        self._scopes.update(dict.fromkeys(below, scope))
        return scope

    @cached_property
    def trees(self) -> Trees:
        """Which modules of the file are trees."""
        return Trees(self.ctx, lambda node: (value for value, _ in self.sources(node, self.scope(node))))

    def statements(self, scope: VariableScope) -> list[ast.stmt]:
        """The statements of a scope, those in nested blocks too, without those of nested functions and classes."""
        if scope.node not in self._statements:
            self._statements[scope.node] = list(self._statements_of(scope))
        return self._statements[scope.node]

    def _statements_of(self, scope: VariableScope) -> Iterator[ast.stmt]:
        stack: list[ast.AST] = list(scope.function.node.body if scope.function is not None else self.tree.body)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.stmt):
                yield node
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                stack.extend(c for c in ast.iter_child_nodes(node) if isinstance(c, ast.stmt | ast.ExceptHandler))

    def assigned(self, name: str, scope: VariableScope) -> list[ast.expr]:
        """Every value that a scope gives a name (or ``self.x``)."""
        return self._values(scope).get(name, [])

    def _values(self, scope: VariableScope) -> dict[str, list[ast.expr]]:
        """Every value that a scope gives names, by the names."""
        if scope.node not in self._assigned:
            self._assigned[scope.node] = self._assignments(scope)
        return self._assigned[scope.node]

    def _assignments(self, scope: VariableScope) -> dict[str, list[ast.expr]]:
        assignments: dict[str, list[ast.expr]] = {}
        for node in self.statements(scope):
            for named in self._named(node):
                assignments.setdefault(named.target.id, []).append(named.value)
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            value = node.value
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                assignments.setdefault(ast.unparse(target), []).append(value)
                for one, given in one_by_one(target, value):
                    if one is not target:
                        assignments.setdefault(ast.unparse(one), []).append(given)
        return assignments

    def _named(self, node: ast.stmt) -> Iterator[ast.NamedExpr]:
        """The assignments inside the expressions of a statement."""
        if ast.NamedExpr in self.ctx.source.kinds:
            stack = [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]
            while stack:
                inner = stack.pop()
                if isinstance(inner, ast.NamedExpr):
                    yield inner
                if not isinstance(inner, ast.Lambda | ast.stmt):
                    stack.extend(ast.iter_child_nodes(inner))

    def home(self, name: str, scope: VariableScope) -> VariableScope:
        """The scope that a plain name belongs to: this function, one around it, or the module level."""
        around: dict[ast.AST, FunctionInfo] = {function.node: function for function in scope.functions}
        home = self.ctx.source.symbols.home(name, [f.node for f in around.values()])
        return VariableScope(around[home] if home is not None else None)

    def named(self, name: str, home: VariableScope) -> Iterator[ast.Name]:
        """Where a variable of a scope is read, assigned and deleted."""
        return (n for n in self.ctx.source.names.get(name, ()) if self.home(name, self.scope(n)) == home)

    def calls(self, info: FunctionInfo) -> Iterator[ast.Call]:
        """Calls of a function of the file."""
        yield from self._calls.get(id(info), ())

    @cached_property
    def _calls(self) -> dict[int, list[ast.Call]]:
        """All calls of functions of the file, by the identity of what is known of each."""
        calls: dict[int, list[ast.Call]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Call) and (info := called_function(self.ctx.fact(node.func))) is not None:
                calls.setdefault(id(info), []).append(node)
        return calls

    # --- optimizers -----------------------------------------------------------------------------------------------

    def constructors(self, node: ast.expr, scope: VariableScope, depth: int = 0) -> list[ast.Call] | None:
        """The constructor calls that an expression's optimizer comes from; None if one of them can't be found."""
        if depth > DEPTH:
            return None
        if isinstance(node, ast.NamedExpr):
            return self.constructors(node.value, scope, depth + 1)
        if isinstance(node, ast.Call):
            return self._made(node, depth)
        constructors: list[ast.Call] = []
        sources, parents = list(self.sources(node, scope)), self.ctx.source.parents
        for value, where in sources:
            if value is None:
                return None
            default = isinstance(parents.get(value), ast.arguments)
            if isinstance(value, ast.Constant) and (
                default or any(o and are_alternatives(value, o, parents) for o, _ in sources)
            ):
                continue  # None, which has no steps
            made = self.constructors(value, where, depth + 1)
            if made is None:
                return None
            constructors += [m for m in made if m not in constructors]
        return constructors or None

    def _made(self, node: ast.Call, depth: int) -> list[ast.Call] | None:
        fact = self.ctx.fact(node.func)
        if isinstance(fact, Qual) and isinstance(self.ctx.fact(node), Object):
            return [node]
        if isinstance(fact, Function) and fact.info.node in self.ctx.inference.functions:
            constructors: list[ast.Call] = []
            for inner in symbols.walk(fact.info.node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    made = self.constructors(inner.value, VariableScope(fact.info), depth + 1)
                    if made is None:
                        return None
                    constructors += made
            return constructors or None
        return None

    def sources(self, node: ast.expr, scope: VariableScope) -> Iterator[tuple[ast.expr | None, VariableScope]]:
        """Where the value of a name or of ``self.x`` comes from; None for what can't be followed."""
        if isinstance(node, ast.Name):
            home = self.home(node.id, scope)
            values = [value for value in self.assigned(node.id, home) if not _is_itself(value, node.id)]
            if len(values) > 1 and home == scope and (only := given_last(self.ctx.source, node)) is not None:
                values = [only]
            yield from ((value, home) for value in values)
            if not values and home.function is not None:
                yield from self._passed(home.function, node.id)
            elif not values:
                yield None, home
            return
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self.owner(scope)
            if owner is not None and node.value.id == "self":
                is_set = False
                inherited = (one for one in owner.ancestry() if not one.external)
                for method in (m for one in inherited for m in one.methods.values()):
                    for value in self.assigned(ast.unparse(node), VariableScope(method)):
                        is_set = True
                        yield value, VariableScope(method)
                if is_set:
                    return
            elif held := [*self.holders.attributes(node)]:
                yield from (
                    (value, VariableScope(method))
                    for method, text in held
                    for value in self.assigned(text, VariableScope(method))
                )
                return
        if isinstance(node, ast.Subscript):
            yield from self._items(node, scope)
            return
        yield None, scope

    def _items(self, node: ast.Subscript, scope: VariableScope) -> Iterator[tuple[ast.expr | None, VariableScope]]:
        """What stands under a key of a dict, or at a place of a list, that is written out; None for others."""
        for held, where in self.sources(node.value, scope):
            match held, node.slice:
                case ast.Dict(keys=keys, values=values), ast.Constant(value=str() as key):
                    named = [getattr(k, "value", None) for k in keys]
                    picked = values[named.index(key)] if named.count(key) == 1 and None not in named else None
                case ast.List(elts=items) | ast.Tuple(elts=items), ast.Constant(value=int() as at):
                    plain = not any(isinstance(item, ast.Starred) for item in items) and -len(items) <= at < len(items)
                    picked = items[at] if plain else None
                case _:
                    picked = None
            yield (None if picked is None or is_filled(self.ctx.source, node.value) else picked), where

    def owner(self, scope: VariableScope) -> ClassInfo | None:
        return next((function.owner for function in scope.functions if function.owner is not None), None)

    def _passed(self, info: FunctionInfo, name: str) -> Iterator[tuple[ast.expr | None, VariableScope]]:
        """The arguments that the file's calls pass for a parameter."""
        called = False
        default = next((v for p, v in defaults(info) if p.arg == name), None)
        for call in self.calls(info):
            called = True
            value = next((v for p, v in bound_arguments(call, info) if p.arg == name), default)
            yield value, self.scope(call)
        if not called:
            yield None, VariableScope(None)

    @cached_property
    def holders(self) -> Holders:
        """The objects of the file's own classes that hold modules and optimizers."""
        return Holders(self.ctx)

    def holder(self, scope: VariableScope) -> str | None:
        """The name by which a scope has an object whose attributes are variables of their own.

        ``self`` in a method of a class that isn't a module, or the only name of an object of such a class.
        """
        owner = self.owner(scope)
        if owner is not None:
            return None if owner.is_module else "self"
        return self.holders.of(scope.node)

    @cached_property
    def trained(self) -> TrainedVariables:
        """The variables outside of modules that are trained."""
        return TrainedVariables(self.ctx, lambda node: (v for v, _ in self.sources(node, self.scope(node))))

    # --- modules --------------------------------------------------------------------------------------------------

    def modules(self, node: ast.expr, scope: VariableScope) -> tuple[str, ...] | None:
        """The modules that an optimizer updates, as expressions of ``scope``; None where that can't be told."""
        made = self.constructors(node, scope)
        if made is None:
            return None
        classes: tuple[str, ...] | None = None
        for call in made:
            plan = self.ctx.plan.optimizers.get(call)
            if plan is None or not plan.target:
                return None
            where = self.scope(call)
            names = []
            for text in targets(plan.target):
                local_name = self.seen_from(text, where, scope)
                if local_name is None:
                    return None
                names.append(local_name)
            if classes is not None and classes != tuple(names):
                return None
            classes = tuple(names)
        return classes

    def seen_from(self, text: str, where: VariableScope, scope: VariableScope, depth: int = 0) -> str | None:
        """The expression that names in ``scope`` what ``text`` names in ``where``."""
        if where == scope:
            return text
        node = ast.parse(text, mode="eval").body
        base = base_module(node)
        if base is None or depth > DEPTH:
            return None
        suffix = text[len(ast.unparse(base)) :]
        receivers = list(self._receivers(base, where))
        for name, place in receivers:
            if place == scope and place.function is not None and place.function is not where.function:
                return name + suffix
        visible = isinstance(base, ast.Name) and base.id != "self" and self._sees(base.id, where, scope)
        if visible and self._mentions(scope, ast.unparse(base)):
            return text
        if self._same_self(base, where, scope):
            return text
        if (held := self._held(base, where, scope)) is not None:
            return held + suffix
        for name, place in receivers:
            local_name = self.seen_from(name, place, scope, depth + 1)
            if local_name is not None:
                return local_name + suffix
        if visible:
            return text
        given = {self.seen_from(name, place, scope, depth + 1) for name, place in self._given(base, where)}
        return f"{only}{suffix}" if len(given) == 1 and (only := given.pop()) is not None else None

    def _given(self, base: ast.expr, where: VariableScope) -> Iterator[tuple[str, VariableScope]]:
        """What the file's calls of a function give for its parameter, or for the ``self`` of a method."""
        if where.function is None or not isinstance(base, ast.Name):
            return
        for call in self.calls(where.function):
            if base.id == "self" and isinstance(call.func, ast.Attribute):
                yield ast.unparse(call.func.value), self.scope(call)
            for parameter, value in bound_arguments(call, where.function):
                if parameter.arg == base.id and base.id != "self":
                    yield ast.unparse(value), self.scope(call)

    def _sees(self, name: str, where: VariableScope, scope: VariableScope) -> bool:
        """Whether a name is the same variable in both scopes."""
        return self.home(name, scope) == self.home(name, where)

    def _mentions(self, scope: VariableScope, name: str) -> bool:
        """Whether a name stands in a scope."""
        return any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(scope.node or self.tree))

    def _held(self, base: ast.expr, where: VariableScope, scope: VariableScope) -> str | None:
        """What a scope that has an object calls what the object's own methods call ``self.model``."""
        owner, text = self.owner(where), ast.unparse(base)
        if owner is None or not text.startswith("self.") or self.owner(scope) is not None:
            return None
        holder = self.holders.of(scope.node)
        is_its = holder is not None and self.holders.is_of(holder, scope.node, owner)
        return f"{holder}{text.removeprefix('self')}" if is_its else None

    def _same_self(self, base: ast.expr, where: VariableScope, scope: VariableScope) -> bool:
        """``self.model`` is the same in every method of a class and of those that derive from it."""
        mine, other = self.owner(where), self.owner(scope)
        names_self = any(isinstance(n, ast.Name) and n.id == "self" for n in symbols.walk(base))
        if mine is None or other is None or not names_self:
            return False
        return mine in other.ancestry() or other in mine.ancestry()

    def _receivers(self, base: ast.expr, where: VariableScope) -> Iterator[tuple[str, VariableScope]]:
        """Other names of a value: ``self.x`` that it is assigned to, parameters that it is passed for."""
        text = ast.unparse(base)
        for name, values in self._values(where).items():
            of_self = name.startswith("self.") and name.removeprefix("self.").isidentifier()
            if of_self and any(ast.unparse(same_module(value)) == text for value in values):
                yield name, where
        for call in symbols.walk(where.node or self.tree):
            if not isinstance(call, ast.Call) or self.scope(call) != where:
                continue
            info = called_function(self.ctx.fact(call.func))
            if info is None or info.external:
                continue
            for parameter, value in bound_arguments(call, info):
                if ast.unparse(value) == text:
                    yield parameter.arg, VariableScope(info)

    def is_module(self, node: ast.expr) -> bool:
        return is_module(self.ctx.fact(node))


def _is_itself(value: ast.expr, name: str) -> bool:
    """Whether a variable is given what it holds already: ``model = model.train()``."""
    same = same_module(value)
    return same is not value and isinstance(same, ast.Name) and same.id == name
