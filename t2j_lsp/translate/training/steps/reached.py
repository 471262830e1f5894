"""What of its modules a step reaches: the attributes, with parameters, that its loss is computed by.

Code is followed through the functions and forward passes of the file, with the constants that calls give. Where a test
isn't known, both of its ways count; where a module goes somewhere that can't be followed, all of it is reached.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import base_method, bound_arguments, called_function, defaults, spreads
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Fact, Layer, ListOf, Qual, Tuple
from t2j_lsp.translate.source.positions import leaves

from .carried import is_cut, stops_gradients
from .step_values import VARYING, Known, ValuesOfSteps, stored_names
from .wanted_values import (
    Wanted,
    fresh_variables,
    is_unwanted,
    names_of_others,
    returned_values,
    unpacked_values,
    variables_of,
    written_into,
)

_WALKS = frozenset({"enumerate", "reversed", "zip"})
_ALL = frozenset({
    "children", "modules", "named_children", "named_modules", "parameters", "named_parameters", "state_dict",
})  # fmt: skip
_DICTS = frozenset({"__dict__", "_modules", "_parameters"})
Part = tuple[ClassInfo, str]
"""An attribute of a class of modules."""


class Untold(Exception):
    """What a step reaches can't be followed."""


@dataclass
class ReachedParts:
    """What one step reaches, and the tests in it that may go either way from one step to the next."""

    parts: set[Part] = field(default_factory=set)
    whole: set[ClassInfo] = field(default_factory=set)
    """Classes whose modules go somewhere that isn't followed."""
    tests: dict[ast.expr, None] = field(default_factory=dict)

    def holds(self, part: Part) -> bool:
        """Whether an attribute is reached."""
        cls, name = part
        if any(one in self.whole for one in cls.ancestry()):
            return True
        return any(n == name and (c in cls.ancestry() or cls in c.ancestry()) for c, n in self.parts)


class Reaching:
    """Follows the code of a step."""

    def __init__(self, values: ValuesOfSteps) -> None:
        self.inference = values.inference
        self.values = values
        self.forced: Mapping[ast.expr, bool] = {}
        self.out = ReachedParts()
        self._entered: set[tuple[object, ...]] = set()

    def reached(
        self, code: Sequence[ast.stmt], losses: Sequence[ast.expr], known: Known, forced: Mapping[ast.expr, bool]
    ) -> ReachedParts:
        """What the losses are computed by; ``forced`` says how tests go. Raises Untold."""
        self.forced, self.out, self._entered = forced, ReachedParts(), set()
        self._block(code, losses, known, ())
        return self.out

    # --- statements -----------------------------------------------------------------------------------------------

    def _block(
        self,
        code: Sequence[ast.stmt],
        roots: Sequence[ast.expr],
        known: Known,
        running: tuple[FunctionInfo, ...],
        wanted: Wanted = None,
    ) -> None:
        """Follow what ``roots``, or what is returned, is computed by in some code: ``wanted`` of several values."""
        waiting: dict[ast.stmt, Collection[str]] = {}
        kept: list[ast.AST] = [*roots]
        leaf = [*self._run(code, known)]
        if any(isinstance(n, ast.NamedExpr) for node in leaf for n in symbols.walk(node)):
            raise Untold
        fresh = fresh_variables(leaf)
        for node in leaf:
            if isinstance(node, ast.Return):
                kept += returned_values(node, wanted)
            elif (names := self._bound(node)) is None or not (written_into(node) <= fresh):
                kept.append(node)
            elif wanted is not None and is_unwanted(node, code, wanted):
                continue
            else:
                waiting[node] = names
        needed = {name for node in kept for name in self._names(node, known)}
        if running:
            needed |= names_of_others(running[-1].node)
        while more := [node for node, names in waiting.items() if not needed.isdisjoint(names)]:
            kept += more
            needed |= {name for node in more for name in self._names(node, known)}
            for node in more:
                del waiting[node]
        for part in kept:
            self._follow(part, known, running, needed)

    def _bound(self, node: ast.stmt) -> Collection[str] | None:
        """The variables that a statement gives values, and does nothing else; None if it may do more."""
        match node:
            case ast.Assign(targets=targets):
                return variables_of(targets)
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return variables_of([target])
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                return {name}
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)) as func)):
                fact = self.inference.fact(func)
                return None if called_function(fact) is not None or is_module(fact) else {name}
            case ast.Expr(value=ast.Call(func=func, keywords=keywords)):
                plain = isinstance(self.inference.fact(func), Qual) and all(k.arg != "out" for k in keywords)
                return () if plain else None
            case (
                ast.Expr(value=ast.Constant())
                | ast.Pass()
                | ast.Delete()
                | ast.Global()
                | ast.Nonlocal()
                | ast.Break()
                | ast.Continue()
            ):
                return ()
        return None

    def _run(self, code: Iterable[ast.stmt], known: Known) -> Iterator[ast.stmt]:
        """The simple statements that may run, with the headers of loops."""
        for node in code:
            match node:
                case ast.If(test=test, body=body, orelse=orelse):
                    goes = self._goes(test, known)
                    if goes is not False:
                        yield from self._run(body, known)
                    if goes is not True:
                        yield from self._run(orelse, known)
                    taken = [] if goes is None else body if goes else orelse
                    if leaves(taken):
                        return
                case ast.For(target=target, iter=each, body=body, orelse=orelse):
                    yield ast.Assign([ast.List([target], ast.Store())], each)
                    yield from self._run([*body, *orelse], known)
                case ast.While(body=body, orelse=orelse):
                    yield from self._run([*body, *orelse], known)
                case ast.With(items=items, body=body):
                    if not any(stops_gradients(self.inference, item.context_expr) for item in items):
                        yield from self._run(body, known)
                case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
                    yield from self._run([*body, *orelse, *last, *(s for h in handlers for s in h.body)], known)
                case ast.Match():
                    raise Untold
                case ast.Assert() | ast.Raise():
                    pass
                case _:
                    yield node

    def _goes(self, test: ast.expr, known: Known) -> bool | None:
        """How a test goes; None if that isn't known, or differs."""
        if any(isinstance(n, ast.NamedExpr) for n in symbols.walk(test)):
            raise Untold
        if test in self.forced:
            return self.forced[test]
        value = self.values.value(test, known)
        if value is VARYING:
            self.out.tests[test] = None
        return None if value in (VARYING, None) else bool(value[0])  # type: ignore[index]

    def _names(self, part: ast.AST, known: Known) -> Iterator[str]:
        """The variables by which gradients may flow into some code."""
        for node in self._carrying(part, known):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id

    # --- expressions ----------------------------------------------------------------------------------------------

    def _carrying(self, part: ast.AST, known: Known) -> Iterator[ast.AST]:
        """The nodes of some code, without those that no gradient flows through."""
        if is_cut(self.inference, part):
            return
        if isinstance(part, ast.IfExp):
            goes = self._goes(part.test, known)
            for arm in [part.body] * (goes is not False) + [part.orelse] * (goes is not True):
                yield from self._carrying(arm, known)
            return
        yield part
        for child in symbols.children(part):
            yield from self._carrying(child, known)

    def _follow(self, part: ast.AST, known: Known, running: tuple[FunctionInfo, ...], needed: Collection[str]) -> None:
        """Note what some code reads of modules, and go into what it calls."""
        unpacked = unpacked_values(part, needed)
        if isinstance(part, ast.Assign) and unpacked is None:
            unpacked = self._picked(part)
        for node in self._carrying(part, known):
            match node:
                case ast.Call(func=ast.Attribute(attr=attr, value=owner)) if attr in _ALL:
                    self._all_of(self.inference.fact(owner))
                case ast.Call(func=ast.Name(id="getattr" | "vars")):
                    raise Untold
                case ast.Call(func=func):
                    self._call(node, known, running, unpacked if getattr(part, "value", None) is node else None)
                    if isinstance(func, ast.Attribute):
                        self._read(func)
                case ast.Attribute(attr=attr) if attr in _DICTS:
                    raise Untold
                case ast.Attribute(ctx=ast.Load()):
                    self._read(node)
                    self._method(node, running)
                    if not self._is_called(node) and not self._is_walked(node):
                        self._all_of(self.inference.fact(node))
                case ast.Name(ctx=ast.Load()) if not self._is_called(node):
                    fact = self.inference.fact(node)
                    if node.id != "self" and is_module(fact):
                        self._all_of(fact)

    def _picked(self, part: ast.Assign) -> Wanted:
        """The keys or places by which alone the items of a value are read: ``out = net(x)``, ``out["main"]``."""
        match part.targets:
            case [ast.Name(id=name)]:
                pass
            case _:
                return None
        parents, keys = self.inference.source.parents, set[object]()
        for node in self.inference.source.names.get(name, ()):
            home = symbols.function_around(part, parents)
            if not isinstance(node.ctx, ast.Load):
                continue
            if symbols.function_around(node, parents) is not home:
                if self.inference.source.home(node) is home:
                    return None  # another function reads it
            else:
                match parents.get(node):
                    case ast.Subscript(slice=ast.Constant(value=key)):
                        keys.add(key)
                    case _:
                        return None
        return keys or None

    def _method(self, node: ast.Attribute, running: tuple[FunctionInfo, ...]) -> None:
        """Follow a property, and a method that is handed on."""
        at = self.inference.source.parents.get(node)
        if isinstance(at, ast.Call) and at.func is node:
            return
        owner = self.inference.fact(node.value)
        info = owner.cls.info.method(node.attr) if isinstance(owner, Instance) else None
        if info is not None and info not in running and not info.external:
            self._enter(info, {}, running)

    def _is_called(self, node: ast.expr) -> bool:
        """Whether a module is called, or asked for a part or method, and does not go anywhere itself."""
        at = self.inference.source.parents.get(node)
        return isinstance(at, ast.Attribute) or isinstance(at, ast.Call) and at.func is node

    def _is_walked(self, node: ast.expr) -> bool:
        """Whether it is a container of modules that are called one by one."""
        parents = self.inference.source.parents
        at = parents.get(node)
        while isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id in _WALKS:
            node, at = at, parents.get(at)
        if isinstance(at, ast.For | ast.comprehension):
            return at.iter is node
        return isinstance(at, ast.Subscript) and at.value is node and self._is_called(at)

    def _read(self, node: ast.Attribute) -> None:
        owner = self.inference.fact(node.value)
        if isinstance(owner, Instance):
            self.out.parts.add((owner.cls.info, node.attr))

    def _all_of(self, fact: Fact) -> None:
        """A module goes where it isn't followed: all of it may be reached."""
        match fact:
            case Instance():
                self.out.whole.update(classes_of(fact.cls.info))
            case Layer(items=items):
                for item in items or ():
                    self._all_of(item)
            case ListOf() | Tuple():
                for one in fact.items if isinstance(fact, Tuple) else (fact.item,):
                    self._all_of(one)

    def _call(self, call: ast.Call, known: Known, running: tuple[FunctionInfo, ...], wanted: Wanted) -> None:
        """Go into what a call runs, for ``wanted`` of the values that it gives. Raises Untold."""
        fact = self.inference.fact(call.func)
        if isinstance(fact, Instance) and is_module(fact):
            info = fact.cls.info.method("forward")
        else:
            info = called_function(fact) if not isinstance(fact, Class) else None
        if isinstance(call.func, ast.Attribute) and symbols.is_super(call.func.value):
            info = base_method(self.inference, call)
            if info is None:
                raise Untold
        if info is None or info.external or info in running or len(running) > 8:
            if isinstance(fact, Function) and info in running:
                return
            self._unfollowed(call, fact, running)
            return
        if spreads(call):
            raise Untold
        given = {p.arg: v for p, v in bound_arguments(call, info)}
        constants: dict[str, object] = {}
        for parameter, value in {**{p.arg: v for p, v in defaults(info)}, **given}.items():
            one = self.values.value(value, known if parameter in given else {})
            if one is not None:
                constants[parameter] = VARYING if one is VARYING else one[0]  # type: ignore[index]
        written = stored_names(info.node)
        constants = {name: value for name, value in constants.items() if name not in written}
        self._enter(info, constants, running, wanted)

    def _enter(
        self, info: FunctionInfo, known: Known, running: tuple[FunctionInfo, ...], wanted: Wanted = None
    ) -> None:
        """Follow the body of a function, once for what is known of its variables and wanted of its values."""
        entry = (info, running, frozenset(known.items()), None if wanted is None else frozenset(wanted))
        if entry not in self._entered:
            self._entered.add(entry)
            self._block(info.node.body, (), known, (*running, info), wanted)

    def _unfollowed(self, call: ast.Call, fact: Fact, running: tuple[FunctionInfo, ...]) -> None:
        """A call of what isn't code of the file."""
        of_module = isinstance(call.func, ast.Attribute) and is_module(self.inference.fact(call.func.value))
        of_name = isinstance(call.func, ast.Name) and call.func.id not in vars(builtins)
        if isinstance(fact, AnyModule) or fact == UNKNOWN and (of_module or of_name):
            raise Untold
        if isinstance(fact, Layer) and fact.items and all(isinstance(item, Instance) for item in fact.items):
            for info in {i.cls.info.method("forward") for i in fact.items if isinstance(i, Instance)}:
                if info is None or info.external or info in running:
                    self._all_of(fact)
                else:
                    self._enter(info, {}, running)
        elif isinstance(fact, Layer | Instance):
            self._all_of(fact)


def classes_of(cls: ClassInfo) -> list[ClassInfo]:
    """The classes of a module and of all its parts, as far as they are known, in the order of the text."""
    classes: list[ClassInfo] = []
    waiting = [cls]
    while waiting:
        for info in waiting.pop(0).ancestry():
            if info not in classes:
                classes.append(info)
                for fact in info.attributes.values():
                    waiting += [one.cls.info for one in _instances(fact)]
    return classes


def _instances(fact: Fact) -> Iterator[Instance]:
    match fact:
        case Instance():
            yield fact
        case Layer(items=items) if items:
            for one in items:
                yield from _instances(one)
        case Tuple(items=items):
            for one in items:
                yield from _instances(one)
        case ListOf(item=item):
            yield from _instances(item)
