"""Calls of a class or function in its file, with their arguments traced back to constants and the file's own names.

``ResNet(block, layers, **kwargs)`` inside ``_resnet(block, layers, ...)``, which ``resnet18`` calls with ``BasicBlock``
and ``[2, 2, 2, 2]``, gives ``ResNet(BasicBlock, [2, 2, 2, 2])``.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import bound_names

from .scopes import ModuleScope

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_DEPTH = 4
_MAX_CALLS = 12


class Unknown(Exception):
    """An expression depends on what only a run of the program would tell."""


@dataclass(frozen=True)
class CallFrame:
    """Where an expression stands: the function around it, and the arguments of one call of that function."""

    function: _Function | None
    body: tuple[ast.stmt, ...]
    arguments: dict[str, ast.expr]
    rest: tuple[ast.expr, ...] = ()
    """The call's positional arguments beyond the function's parameters: what ``*args`` holds."""

    @property
    def keywords(self) -> str | None:
        """The name of the function's ``**kwargs``, which count as empty."""
        star = self.function.args.kwarg if self.function else None
        return star.arg if star else None


@dataclass(frozen=True)
class FoundCall:
    """A call, its statement, and its arguments as expressions of the file's top level."""

    call: ast.Call
    statement: ast.stmt
    frame: CallFrame
    args: list[ast.expr]
    kwargs: dict[str, ast.expr]


def calls_of(scope: ModuleScope, name: str, depth: int = 0) -> Iterator[FoundCall]:
    """The calls of a name whose arguments can be traced back."""
    for function, body in _bodies(scope.body):
        for statement in body:
            for call in _calls_in(statement, name):
                for frame in _frames(scope, function, body, depth):
                    try:
                        args, kwargs = _arguments(scope, call, frame)
                    except Unknown:
                        continue
                    yield FoundCall(call, statement, frame, args, kwargs)


def resolve(scope: ModuleScope, node: ast.expr, frame: CallFrame, depth: int = 0) -> ast.expr:
    """The expression with local names replaced by what they stand for. Raises Unknown."""
    if depth > 20:
        raise Unknown
    resolved: ast.expr = _Resolver(scope, frame, depth).visit(copy.deepcopy(node))
    return ast.fix_missing_locations(resolved)


class _Resolver(ast.NodeTransformer):
    def __init__(self, scope: ModuleScope, frame: CallFrame, depth: int) -> None:
        self.scope = scope
        self.frame = frame
        self.depth = depth
        self.bound: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.bound:
            return node
        if node.id in self.frame.arguments:
            return copy.deepcopy(self.frame.arguments[node.id])
        local = _assigned(self.frame.body, node.id)
        if local is not None and not (self.frame.function is None and node.id in self.scope.bindings):
            return resolve(self.scope, local, self.frame, self.depth + 1)
        if node.id in self.scope.bindings or hasattr(builtins, node.id):
            return node
        raise Unknown

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Attribute(ast.Name(owner), "pop" | "get"), [_, default]) if owner == self.frame.keywords:
                return resolve(self.scope, default, self.frame, self.depth + 1)
        node.keywords = [k for k in node.keywords if not _is_star(k, self.frame)]
        return self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> ast.AST:
        names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        outer, self.bound = self.bound, self.bound | names
        resolved = self.generic_visit(node)
        self.bound = outer
        return resolved

    visit_ListComp = _comprehension
    visit_GeneratorExp = _comprehension
    visit_SetComp = _comprehension
    visit_DictComp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        raise Unknown


def _is_star(keyword: ast.keyword, frame: CallFrame) -> bool:
    """Whether a call's ``**kwargs`` passes the function's own on."""
    return keyword.arg is None and isinstance(keyword.value, ast.Name) and keyword.value.id == frame.keywords


def _assigned(body: tuple[ast.stmt, ...], name: str) -> ast.expr | None:
    """What the one simple assignment to a local name gives it."""
    values: list[ast.expr] = []
    for statement in body:
        if not isinstance(statement, ast.Assign):
            if name in bound_names([statement]):
                return None
            continue
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id == name:
                values.append(statement.value)
            elif isinstance(target, ast.Tuple):
                for index, part in enumerate(target.elts):
                    if isinstance(part, ast.Name) and part.id == name:
                        values.append(ast.Subscript(statement.value, ast.Constant(index), ast.Load()))
    return values[0] if len(values) == 1 else None


def _bodies(body: list[ast.stmt]) -> Iterator[tuple[_Function | None, tuple[ast.stmt, ...]]]:
    """Every function with its statements, and the module's own."""
    yield None, tuple(flat(body))
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, _Function):
                yield node, tuple(flat(node.body))


def flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements with those inside ``if``, ``for`` and so on, but not inside functions and classes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = [s for part in ("body", "orelse", "finalbody") for s in getattr(statement, part, [])]
        if inner:
            yield from flat(inner)
        else:
            yield statement


def given_back(statement: ast.stmt, body: Sequence[ast.stmt]) -> ast.stmt | None:
    """``loss = f(x)`` for ``loss, grads = nnx.value_and_grad(loss_fn)(model)``, where ``loss_fn`` returns ``f(x)``.

    Likewise of ``nnx.value_and_grad(lambda model: f(x))(model)``.
    """
    match statement:
        case ast.Assign(
            [ast.Tuple([ast.Name() as loss, _])],
            ast.Call(ast.Call(ast.Attribute(attr="value_and_grad"), [ast.Lambda(body=value)])),
        ):
            return ast.copy_location(ast.Assign([loss], value), value)
        case ast.Assign(
            [ast.Tuple([ast.Name() as loss, _])],
            ast.Call(ast.Call(ast.Attribute(attr="value_and_grad"), [ast.Name(function)], [])),
        ):
            made = [s for s in body if isinstance(s, ast.FunctionDef) and s.name == function]
            if len(made) == 1 and isinstance(last := made[0].body[-1], ast.Return) and last.value is not None:
                return ast.copy_location(ast.Assign([loss], last.value), last)
    return None


def _calls_in(statement: ast.stmt, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _frames(
    scope: ModuleScope, function: _Function | None, body: tuple[ast.stmt, ...], depth: int
) -> Iterator[CallFrame]:
    """The ways a function is entered: by each call of it in the file, then with nothing known but its defaults."""
    if function is None:
        yield CallFrame(None, body, {})
        return
    defaults = defaults_of(function)
    if depth < _MAX_DEPTH and function.name in scope.bindings:
        for number, call in enumerate(calls_of(scope, function.name, depth + 1)):
            if number >= _MAX_CALLS:
                break
            names = [a.arg for a in symbols.positional_parameters(function)]
            given = dict(zip(names, call.args, strict=False)) | call.kwargs
            yield CallFrame(function, body, {**defaults, **given}, tuple(call.args[len(names) :]))
    yield CallFrame(function, body, defaults)


def defaults_of(function: _Function) -> dict[str, ast.expr]:
    """The expressions that a function's parameters have by default."""
    return {a.arg: default for a, default in symbols.defaults(function.args)}


def _arguments(scope: ModuleScope, call: ast.Call, frame: CallFrame) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    args: list[ast.expr] = []
    kwargs: dict[str, ast.expr] = {}
    rest = frame.function.args.vararg if frame.function else None
    for argument in call.args:
        if not isinstance(argument, ast.Starred):
            args.append(resolve(scope, argument, frame))
        elif rest and isinstance(argument.value, ast.Name) and argument.value.id == rest.arg and frame.rest:
            args += frame.rest
        else:
            raise Unknown
    for keyword in call.keywords:
        if keyword.arg is not None:
            kwargs[keyword.arg] = resolve(scope, keyword.value, frame)
        elif not _is_star(keyword, frame):
            raise Unknown
    return args, kwargs
