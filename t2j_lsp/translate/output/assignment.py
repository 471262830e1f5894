"""Whether a name is assigned before it is read, on every way through a function.

Two sets travel along the statements: names that are assigned on every way to a place, and names that are on some. A
read of a name that is not in the second always fails; of one that is only in the second, it may, unless the same
statement reads another one and wherever that is assigned, this is: ``opt_state`` beside ``weights``.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import bound_names

from .problem import Problem

_Def = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class _Ways:
    """Names assigned on every way to a place, and on some way."""

    every: frozenset[str]
    some: frozenset[str]

    def bind(self, *names: str) -> _Ways:
        return _Ways(self.every.union(names), self.some.union(names))

    def unbind(self, name: str) -> _Ways:
        return _Ways(self.every - {name}, self.some - {name})


def _meet(ways: Iterable[_Ways | None]) -> _Ways | None:
    """Where ways come together; None is a place that none reaches."""
    reached = [way for way in ways if way is not None]
    if not reached:
        return None
    return _Ways(
        frozenset.intersection(*(way.every for way in reached)), frozenset.union(*(way.some for way in reached))
    )


def unassigned(tree: ast.Module) -> list[Problem]:
    """Reads of names of a scope that no way, or not every way, through the scope has assigned."""
    return _ScopeWalk(tree.body, (), bound_names(tree.body), frozenset()).problems


class _ScopeWalk:
    """One function, class or file, walked in the order in which it runs."""

    def __init__(
        self, body: list[ast.stmt], path: tuple[str, ...], own: frozenset[str], parameters: frozenset[str]
    ) -> None:
        self.path = path
        self.own = own
        """Names that belong to the scope; others are read from around it."""
        self.problems: list[Problem] = []
        self._body, self._given = body, parameters
        self._now: ast.stmt | None = None
        """The statement that is walked."""
        self._said: set[tuple[str, bool]] = set()
        self._breaks: list[list[_Ways | None]] = []
        self._continues: list[list[_Ways | None]] = []
        self._block(body, _Ways(parameters, parameters))

    # --- statements ---------------------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], ways: _Ways | None) -> _Ways | None:
        for statement in body:
            if ways is None:
                return None
            ways = self._statement(statement, ways)
        return ways

    def _statement(self, node: ast.stmt, ways: _Ways) -> _Ways | None:
        self._now = node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return self._definition(node, ways)
            case ast.If():
                ways = self._read(node.test, ways)
                return _meet([self._block(node.body, ways), self._block(node.orelse, ways)])
            case ast.For() | ast.AsyncFor():
                return self._loop(node, self._read(node.iter, ways), node.target)
            case ast.While():
                return self._loop(node, self._read(node.test, ways), None)
            case ast.Try() | ast.TryStar():
                return self._try(node, ways)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    ways = self._read(item.context_expr, ways)
                    ways = self._store(item.optional_vars, ways)
                return self._block(node.body, ways)
            case ast.Match():
                ways = self._read(node.subject, ways)
                ends: list[_Ways | None] = [ways]
                for case in node.cases:
                    taken = ways.bind(*bound_names([case.pattern]))
                    if case.guard is not None:
                        taken = self._read(case.guard, taken)
                    ends.append(self._block(case.body, taken))
                    if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
                        ends[0] = None
                return _meet(ends)
            case ast.Return() | ast.Raise():
                self._read_parts(node, ways)
                return None
            case ast.Break():
                self._breaks[-1].append(ways)
                return None
            case ast.Continue():
                self._continues[-1].append(ways)
                return None
            case ast.Import() | ast.ImportFrom():
                return ways.bind(*bound_names([node]))
            case ast.Assign():
                ways = self._read(node.value, ways)
                for target in node.targets:
                    ways = self._store(target, ways)
                return ways
            case ast.AugAssign():
                if isinstance(node.target, ast.Name):
                    self._use(node.target, ways)
                ways = self._read(node.value, ways)
                return self._store(node.target, ways)
            case ast.AnnAssign():
                if node.value is None:
                    return ways
                return self._store(node.target, self._read(node.value, ways))
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._use(target, ways)
                        ways = ways.unbind(target.id)
                    else:
                        ways = self._read(target, ways)
                return ways
            case _:
                return self._read_parts(node, ways)

    def _definition(self, node: _Def | ast.ClassDef, ways: _Ways) -> _Ways:
        path = (*self.path, scope_name(node))
        for decorator in node.decorator_list:
            ways = self._read(decorator, ways)
        if isinstance(node, ast.ClassDef):
            for part in (*node.bases, *(k.value for k in node.keywords)):
                ways = self._read(part, ways)
            # A class body looks a name up around it where it has none itself yet.
            inner = _ScopeWalk(node.body, path, frozenset(), frozenset())
        else:
            for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
                ways = self._read(default, ways)
            parameters = frozenset(symbols.parameter_names(node))
            inner = _ScopeWalk(node.body, path, bound_names(node.body) | parameters, parameters)
        self.problems += inner.problems
        return ways.bind(node.name)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, ways: _Ways, target: ast.expr | None) -> _Ways | None:
        self._breaks.append([])
        self._continues.append([])
        # What the body assigns may be there when it starts again.
        start = _Ways(ways.every, ways.some | bound_names(node.body) - deleted_names(node.body))
        end = self._block(node.body, self._store(target, start))
        broken, continued = self._breaks.pop(), self._continues.pop()
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        done = None if endless else _meet([self._store(target, ways), end, *continued])
        done = None if done is None else _Ways(ways.every & done.every, done.some)
        return _meet([self._block(node.orelse, done) if done is not None else None, *broken])

    def _try(self, node: ast.Try | ast.TryStar, ways: _Ways) -> _Ways | None:
        end = self._block(node.body, ways)
        failed = _Ways(ways.every - deleted_names(node.body), ways.some | bound_names(node.body))
        ends: list[_Ways | None] = [self._block(node.orelse, end) if end is not None else None]
        for handler in node.handlers:
            caught = failed.bind(handler.name) if handler.name else failed
            if handler.type is not None:
                caught = self._read(handler.type, caught)
            after = self._block(handler.body, caught)
            ends.append(after.unbind(handler.name) if after is not None and handler.name else after)
        after = _meet(ends)
        if not node.finalbody:
            return after
        final = self._block(
            node.finalbody, failed if after is None else _Ways(failed.every & after.every, failed.some | after.some)
        )
        if final is None or after is None:
            return None
        added = bound_names(node.finalbody)
        return _Ways(after.every | added & final.every, after.some | added)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _read_parts(self, node: ast.AST, ways: _Ways) -> _Ways:
        for child in symbols.children(node):
            ways = self._read(child, ways)
        return ways

    def _read(self, node: ast.AST, ways: _Ways) -> _Ways:
        """The reads of an expression, in the order in which it is computed."""
        match node:
            case ast.Name(ctx=ast.Load()):
                self._use(node, ways)
                return ways
            case ast.NamedExpr():
                return self._store(node.target, self._read(node.value, ways))
            case ast.Lambda():
                for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
                    ways = self._read(default, ways)
                return ways
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node, ways)
            case ast.BoolOp():
                first = self._read(node.values[0], ways)
                rest = first
                for value in node.values[1:]:
                    rest = self._read(value, rest)
                return _meet([first, rest]) or ways
            case ast.IfExp():
                ways = self._read(node.test, ways)
                return _meet([self._read(node.body, ways), self._read(node.orelse, ways)]) or ways
            case _:
                return self._read_parts(node, ways)

    def _comprehension(self, node: _Comprehension, ways: _Ways) -> _Ways:
        own = {n.id for g in node.generators for n in symbols.walk(g.target) if isinstance(n, ast.Name)}
        outer = self._read(node.generators[0].iter, ways)
        if isinstance(node, ast.GeneratorExp):
            return outer  # computed when it is asked for
        inner = outer.bind(*own)
        for index, generator in enumerate(node.generators):
            if index:
                inner = self._read(generator.iter, inner)
            for condition in generator.ifs:
                inner = self._read(condition, inner)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            inner = self._read(part, inner)
        return _Ways(outer.every, outer.some | (inner.some - own))

    def _store(self, target: ast.expr | None, ways: _Ways) -> _Ways:
        match target:
            case None:
                return ways
            case ast.Name():
                return ways.bind(target.id)
            case ast.Tuple() | ast.List():
                for item in target.elts:
                    ways = self._store(item, ways)
                return ways
            case ast.Starred():
                return self._store(target.value, ways)
            case _:
                return self._read_parts(target, ways)

    def _use(self, node: ast.Name, ways: _Ways) -> None:
        name = node.id
        if name not in self.own or name in ways.every:
            return
        certain = name not in ways.some
        if (name, certain) in self._said or not certain and self._goes_along(name, ways):
            return
        self._said.add((name, certain))
        reason = f"'{name}' is read before it is assigned" if certain else f"'{name}' may be read before it is assigned"
        self.problems.append(Problem(node.lineno, self.path, name, certain, reason))

    def _goes_along(self, name: str, ways: _Ways) -> bool:
        """Whether the statement reads another name, and wherever that was assigned, this one was."""
        if not isinstance(self._now, ast.Assign | ast.Expr):
            return False
        others = (_read_by(self._now) & self.own & ways.some) - self._given - {name}
        return any(assigned_along(self._body, other, name) for other in others)


def scope_name(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    """The name of a scope, the same before and after conversion."""
    return "__call__" if node.name == "forward" else node.name


# --- what statements bind ---------------------------------------------------------------------------------------------


def assigned_along(body: list[ast.stmt], name: str, other: str) -> bool:
    """Whether each statement of a scope that assigns a name, or one right behind it, assigns another one too.

    Those that read the name as well (``x = f(x)``) come behind one that gave it its value.
    """
    for block in symbols.blocks(body):
        for place, statement in enumerate(block):
            if name in _bound_by(statement) and not (isinstance(statement, ast.Assign) and name in _read_by(statement)):
                row = itertools.takewhile(lambda s: isinstance(s, ast.Assign), block[place:])
                if not any(other in _bound_by(one) for one in row):
                    return False
    return True


def _bound_by(statement: ast.stmt) -> set[str]:
    """What a statement binds itself, and not those inside it."""
    inside = symbols.bindings([statement], lambda node: isinstance(node, ast.stmt) and node is not statement)
    return {name for name, _ in inside}


def _read_by(statement: ast.stmt) -> set[str]:
    """The names that a statement reads."""
    return {n.id for n in symbols.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def deleted_names(body: list[ast.stmt]) -> frozenset[str]:
    """Names that statements delete."""
    return frozenset(
        n.id for s in body for n in symbols.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)
    )
