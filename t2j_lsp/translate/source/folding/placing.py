"""Functions that are called once, by one statement of another helper: what they do stands there.

    def update(x, h):              y = update(x, state)              r = jax.nn.sigmoid(x)
        r = jax.nn.sigmoid(x)                                        y = r * state
        return r * h

The function's first sentence stays, as a comment. Expressions alone are put in by `inlining.py`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, FunctionNode, named_parameters
from t2j_lsp.translate.source.positions import first_line

from .called import MOVED
from .classes import FLAX_NAMES, of_library
from .definitions import bound_in, definition, free_names, nodes
from .family import Family
from .literals import is_literal
from .signatures import without_methods
from .uses import Index, UseFinder
from .variables import is_pure

MOST_LINES = 14
"""Lines of code of a function that reads well where it is called."""
_LOOSE = ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.UnaryOp | ast.Tuple | ast.Starred
_LATER = FunctionNode | ast.Lambda | Comprehension | ast.IfExp | ast.BoolOp
"""Where what stands inside is not worked out in its turn, or not once."""


def placings(
    texts: Mapping[str, str], finder: UseFinder, user: Index, named: Iterable[str], width: int
) -> Iterator[tuple[str, str, str | None]]:
    """Helpers that take in a function or method which only they call, what they become, and the helper that goes."""
    for name, text in texts.items():
        reads, uses = finder.own.of_module(name, "own"), finder.uses[name]
        home = finder.homes[reads[0]] if len(reads) == 1 and name not in named else None
        if home is None or home == name or not uses.own or len(uses.calls) != 1 or uses.checked:
            continue
        yield from ((home, moved, name) for moved in placed(texts[home], text, width))
    classes = {name: node for name, text in texts.items() if isinstance(node := definition(text), ast.ClassDef)}
    family = Family(finder, classes)
    for name in classes:
        if family.is_known(name) and family.kin(name) == [name]:
            yield from ((name, moved, None) for moved in _methods_placed(texts[name], family, user, width))


def _methods_placed(text: str, family: Family, user: Index, width: int) -> Iterator[str]:
    """A class with one of its methods in its only caller."""
    node, finder = definition(text), family.finder
    assert isinstance(node, ast.ClassDef)
    for method in (s for s in node.body if isinstance(s, ast.FunctionDef) and not s.decorator_list):
        asked = method.name in user.words or method.name.startswith("__")
        asked |= method.name in FLAX_NAMES and not family.is_plain(node.name)
        reads = [n for n in finder.own.reads.get(("attribute", method.name), []) if not of_library(n)]
        called, written = f"self.{method.name}(", ast.get_source_segment(text, method)
        if asked or len(reads) != 1 or text.count(called) != 1 or written is None:
            continue
        function = textwrap.dedent(f"    {written}\n").replace(f"def {method.name}(", f"def {MOVED}(", 1)
        without = without_methods(text, frozenset((method.name,)))
        yield from placed(without.replace(called, f"{MOVED}(self, "), function, width)


@cache
def placed(caller: str, function: str, width: int) -> tuple[str, ...]:
    """A definition with the statements of a function in front of the one that calls it, in the ways that there are.

    First with arguments where their parameters are read, then with those that are more than a name assigned to them.
    """
    made = definition(function)
    if not isinstance(made, ast.FunctionDef) or not _may_move(made):
        return ()
    home = definition(caller)
    parents = {child: node for node in nodes(home) for child in symbols.children(node)}
    calls = [n for n in nodes(home) if isinstance(n, ast.Call) and getattr(n.func, "id", None) == made.name]
    place = _place(calls[0], parents) if len(calls) == 1 else None
    if place is None or place.in_loop and any(isinstance(s, ast.FunctionDef) for s in made.body):
        return ()
    if len(_body(made)) == 1:
        function = _with_named_answer(function, made)
        made = definition(function)
        assert isinstance(made, ast.FunctionDef)
    ways = (_Placing(caller, function, made, place, moves).text(width) for moves in (True, False))
    return tuple(dict.fromkeys(text for text in ways if text is not None))


def _with_named_answer(function: str, made: ast.FunctionDef) -> str:
    """A function that is one expression, which is too long for where it is called: under the function's own name."""
    answer, lines = made.body[-1], function.splitlines(keepends=True)
    indent = " " * answer.col_offset
    lines[answer.lineno - 1] = lines[answer.lineno - 1].replace("return ", f"{made.name} = ", 1)
    end = answer.end_lineno or answer.lineno
    return "".join([*lines[:end], f"{indent}return {made.name}\n", *lines[end:]])


def _may_move(made: ast.FunctionDef) -> bool:
    """Whether a function is a few statements of which the last gives the answer."""
    body = _body(made)
    within = [n for statement in body for n in nodes(statement)]
    other = (
        ast.AsyncFunctionDef
        | ast.ClassDef
        | ast.Global
        | ast.Nonlocal
        | ast.Yield
        | ast.YieldFrom
        | ast.Await
        | ast.NamedExpr
        | ast.Try
    )
    functions = [n for n in within if isinstance(n, ast.FunctionDef)]
    inner = {n for one in functions for n in nodes(one)}
    returns = [n for n in within if isinstance(n, ast.Return) and n not in inner]
    if any(name in bound_in(one) for one in functions for name in symbols.parameter_names(made)):
        return False
    return (
        not (made.decorator_list or made.args.vararg or made.args.kwarg)
        and not any(isinstance(n, other) for n in within)
        and returns == body[-1:]
        and returns[0].value is not None
        and (body[-1].end_lineno or 0) - first_line(body[0]) < MOST_LINES
    )


def _body(made: ast.FunctionDef) -> list[ast.stmt]:
    return made.body[1:] if ast.get_docstring(made) is not None else made.body


@dataclass(frozen=True)
class _Place:
    """Where a function is called: the call, and the expressions, the statement and the functions around it."""

    call: ast.Call
    around: list[ast.AST]
    statement: ast.Assign | ast.Return
    functions: list[ast.FunctionDef]
    in_loop: bool

    @property
    def targets(self) -> set[str]:
        """The names that the statement assigns."""
        stored = getattr(self.statement, "targets", ())
        return {n.id for one in stored for n in nodes(one) if isinstance(n, ast.Name)}


def _place(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> _Place | None:
    around, node = [], parents[call]
    while not isinstance(node, ast.stmt):
        around.append(node)
        node = parents[node]
    if not isinstance(node, ast.Assign | ast.Return) or any(isinstance(n, _LATER) for n in around):
        return None
    if isinstance(node, ast.Assign) and any(not isinstance(t, ast.Name | ast.Tuple) for t in node.targets):
        return None
    start = (call.lineno, call.col_offset)
    before = (n for n in nodes(node) if isinstance(n, ast.Call | ast.Subscript) and n not in around)
    if any((n.lineno, n.col_offset) < start and not (isinstance(n, ast.Call) and is_pure(n)) for n in before):
        return None
    functions, outer, in_loop = [], parents.get(node), False
    while outer is not None:
        in_loop |= isinstance(outer, ast.For | ast.While)
        if isinstance(outer, ast.Try | ast.With):
            return None
        if isinstance(outer, ast.FunctionDef):
            functions.append(outer)
        outer = parents.get(outer)
    return _Place(call, around, node, functions, in_loop) if functions else None


class _Placing:
    """One function that is put in one place."""

    def __init__(self, caller: str, function: str, made: ast.FunctionDef, place: _Place, moves: bool) -> None:
        self.caller, self.function, self.made, self.place, self.moves = caller, function, made, place, moves
        self.body = _body(made)
        self.within = [n for statement in self.body for n in nodes(statement)]
        scopes = [n for n in self.within if isinstance(n, Comprehension | ast.Lambda | ast.FunctionDef)]
        self.inner = {name for one in scopes for name in bound_in(one)}
        """Names of its comprehensions, lambdas and functions."""
        apart = {n for one in scopes for n in nodes(one)}
        self.stored = {n.id for n in self.within if isinstance(n, ast.Name) and _stores(n) and n not in apart}
        self.stored |= {n.name for n in scopes if isinstance(n, ast.FunctionDef)}
        self.parameters = [a.arg for a in named_parameters(made)]

    def text(self, width: int) -> str | None:
        given = self._given()
        put, kept = self._sorted(given) if given is not None else (None, {})
        if put is None or not self._fits(put, kept):
            return None
        last = self._statement(put)
        if last is None:
            return None
        lines, statement = self.caller.splitlines(keepends=True), self.place.statement
        indent = " " * statement.col_offset
        new = [f"{indent}{line}\n" if line else "\n" for line in [*self._lines(put, kept), last]]
        if len(new[0]) > width and new[0].lstrip().startswith("# "):
            del new[0]
        end = statement.end_lineno or statement.lineno
        return "".join([*lines[: statement.lineno - 1], *new, *lines[end:]])

    def _given(self) -> dict[str, ast.expr] | None:
        """What the call passes for each parameter."""
        call = self.place.call
        if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(self.parameters):
            return None
        given: dict[str, ast.expr] = dict(zip(self.parameters, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        unpassed = {a.arg: value for a, value in symbols.defaults(self.made.args) if a.arg not in given}
        if any(not is_literal(value) for value in unpassed.values()) or any(k.arg is None for k in call.keywords):
            return None
        given |= unpassed
        return given if given.keys() == set(self.parameters) else None

    def _sorted(self, given: Mapping[str, ast.expr]) -> tuple[dict[str, ast.expr] | None, dict[str, ast.expr]]:
        """The arguments that stand for their parameters where these are read, and those that are assigned to them."""
        put: dict[str, ast.expr] = {}
        kept: dict[str, ast.expr] = {}
        last = isinstance(self.place.statement, ast.Return)
        for name, value in given.items():
            reads = [n for n in self.within if isinstance(n, ast.Name) and n.id == name]
            if isinstance(value, ast.Name) and value.id == name and name in self.stored:
                if not last and name not in self.place.targets:
                    return None, {}
                put[name] = value
            elif name in self.stored:
                kept[name] = value
            elif (
                isinstance(value, ast.Name | ast.Constant)
                or _is_dtype(value)
                or self.moves
                and len(reads) == 1
                and self._moves(value, reads[0])
            ):
                put[name] = value
            elif reads:
                kept[name] = value
        return put, kept

    def _moves(self, value: ast.expr, read: ast.Name) -> bool:
        """Whether a value may be worked out where its parameter is read."""
        parents = {child: node for node in self.within for child in symbols.children(node)}
        around = list(symbols.with_ancestors(read, parents))
        if any(isinstance(n, _LATER | ast.For | ast.While | ast.If) for n in around) or not is_pure(value):
            return False
        held = any(isinstance(n, ast.Attribute | ast.Subscript) and not of_library(n) for n in nodes(value))
        return not held or all(is_pure(n) for n in self.within if isinstance(n, ast.Call)) and not self._writes()

    def _writes(self) -> bool:
        """Whether the function sets attributes or items."""
        places = (n for n in self.within if isinstance(n, ast.Attribute | ast.Subscript))
        return any(not isinstance(n.ctx, ast.Load) for n in places)

    def _fits(self, put: Mapping[str, ast.expr], kept: Mapping[str, ast.expr]) -> bool:
        """Whether every name means the same in the place."""
        home = self.place.functions[0]
        own = self.stored | kept.keys()
        arguments = {n for value in (*put.values(), *kept.values()) for n in nodes(value)}
        same = {p for p, value in put.items() if isinstance(value, ast.Name) and value.id == p}
        moved = {n.id for n in arguments if isinstance(n, ast.Name)} - same
        bound = bound_in(home)
        apart = {
            n
            for one in nodes(home)
            if isinstance(one, FunctionNode | ast.Lambda) and one is not home
            for n in nodes(one)
        }
        later = {n.id for n in apart if isinstance(n, ast.Name)}
        named = {n.id for n in nodes(home) if isinstance(n, ast.Name) and n is not self.place.call.func} | bound
        last = isinstance(self.place.statement, ast.Return)
        for name in own & named:
            gone = last and name in bound or name in self.place.targets
            if not gone or name in later or name in moved:
                return False
        outer = {name for one in self.place.functions for name in bound_in(one)}
        return not (moved & (own | self.inner) or free_names(self.function) & outer)

    def _lines(self, put: Mapping[str, ast.expr], kept: Mapping[str, ast.expr]) -> Iterator[str]:
        """The statements in front of the one that called the function."""
        said = (ast.get_docstring(self.made) or "").partition("\n")[0]
        if said:
            yield f"# {re.split(r'(?<=[.])(?= [A-Z])', said)[0]}"
        for name, value in kept.items():
            yield f"{name} = {ast.get_source_segment(self._source_of(value), value)}"
        first, last = first_line(self.body[0]), self.body[-1].lineno
        whole = _replaced(self.function, self._replacements(self.body[:-1], put)).splitlines(keepends=True)
        yield from textwrap.dedent("".join(whole[first - 1 : last - 1])).splitlines()

    def _source_of(self, value: ast.expr) -> str:
        return self.function if value in [v for _, v in symbols.defaults(self.made.args)] else self.caller

    def _replacements(self, places: Iterable[ast.AST], put: Mapping[str, ast.expr]) -> Iterator[tuple[ast.expr, str]]:
        for place in places:
            parents = {child: node for node in nodes(place) for child in symbols.children(node)}
            for node in nodes(place):
                if isinstance(node, ast.Name) and node.id in put:
                    value = put[node.id]
                    made = ast.get_source_segment(self._source_of(value), value) or ""
                    alone = isinstance(parents.get(node), ast.Call | ast.keyword | ast.Assign | None)
                    yield node, f"({made})" if isinstance(value, _LOOSE) and not alone else made

    def _statement(self, put: Mapping[str, ast.expr]) -> str | None:
        """The statement with what the function returns in the place of the call."""
        returned = getattr(self.body[-1], "value", None)
        assert isinstance(returned, ast.expr)
        answer = ast.get_source_segment(self.function, returned) or ""
        shift = (returned.lineno, returned.col_offset)
        answer = _replaced(answer, self._replacements([returned], put), shift)
        whole = ast.get_source_segment(self.caller, self.place.statement) or ""
        if "\n" in answer or "\n" in whole:
            return None
        around = self.place.around
        node: ast.expr = self.place.call
        if around and isinstance(around[0], ast.Starred) and isinstance(returned, ast.Tuple):
            node = around[0]
            answer = answer.removeprefix("(").removesuffix(")") if answer.startswith("(") else answer
        elif around and isinstance(returned, _LOOSE) and not _is_alone(around[0], node):
            answer = f"({answer})"
        start = (self.place.statement.lineno, self.place.statement.col_offset)
        return _replaced(whole, [(node, answer)], start)


def _is_dtype(value: ast.expr) -> bool:
    """Whether a value is ``x.dtype``, which costs nothing to ask for again."""
    return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.attr == "dtype"


def _is_alone(around: ast.AST, node: ast.expr) -> bool:
    return isinstance(around, ast.keyword) or isinstance(around, ast.Call) and around.func is not node


def _stores(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def _replaced(text: str, changes: Iterable[tuple[ast.expr, str]], start: tuple[int, int] = (1, 0)) -> str:
    """A text, which begins at a place of a file, with expressions replaced."""
    lines = text.encode().splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        before = sum(map(len, lines[: line - start[0]]))
        return before + column - (start[1] if line == start[0] else 0)

    whole = b"".join(lines)
    for node, new in sorted(changes, key=lambda change: (change[0].lineno, change[0].col_offset), reverse=True):
        begin = place(node.lineno, node.col_offset)
        end = place(node.end_lineno or node.lineno, node.end_col_offset or 0)
        whole = whole[:begin] + new.encode() + whole[end:]
    return whole.decode()
