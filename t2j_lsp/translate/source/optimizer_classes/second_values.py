"""Variables that hold an entry of the state and then another value, ``exp_avg = exp_avg * mask``: two variables."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence

from t2j_lsp import symbols

from .names import is_state, pairs, same, writes_into
from .renaming import renamed
from .unfit import need

Key = Callable[[ast.expr], str | None]
"""What says which entry of the state an expression is."""

_WRITTEN = "{0} is the state's {1!r} and then another value"


def with_own_names(body: Sequence[ast.stmt], parameter: str, fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Statements in which each variable that holds an entry of the state holds nothing else. Raises Unfit."""
    nodes = [n for s in body for n in symbols.walk(s) if isinstance(n, ast.Assign)]
    states = {t.id for n in nodes for t, v in pairs(n) if isinstance(t, ast.Name) and is_state(v, parameter)}

    def key(node: ast.expr) -> str | None:
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=str(name))):
                of_state = isinstance(value, ast.Name) and value.id in states
                return name if of_state or is_state(value, parameter) else None
        return None

    return _separated(body, key, fresh, set())


def _separated(body: Sequence[ast.stmt], key: Key, fresh: Callable[[str], str], later: set[str]) -> list[ast.stmt]:
    """``later`` are names that are read behind the statements."""
    out = [*body]
    for at, node in enumerate(body):
        if isinstance(node, ast.If):
            behind = later.union(*map(_names, body[at + 1 :]))
            made = [_separated(part, key, fresh, behind) for part in (node.body, node.orelse)]
            if made != [node.body, node.orelse]:
                out[at] = ast.copy_location(ast.If(node.test, *made), node)
    for at, node in enumerate(out):
        for name, entry in _held(node, key):
            rest = out[at + 1 :]
            if any(_gives(s, name, key) for s in rest) and not _goes_back(rest, entry, key):
                rest = _Split(name, entry, key, fresh).rest(rest, later)
                return _separated([*out[: at + 1], *rest], key, fresh, later)
    return out


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _held(node: ast.stmt, key: Key) -> list[tuple[str, str]]:
    """The variables that a statement makes hold an entry of the state, itself or in its branches."""
    out: list[tuple[str, str]] = []
    for inner in ast.walk(node) if isinstance(node, ast.If) else [node]:
        if isinstance(inner, ast.Assign):
            entries = [(target, key(same(value))) for target, value in pairs(inner)]
            entries += [(t, key(s)) for t in inner.targets for s in inner.targets]
            out += [(t.id, k) for t, k in entries if isinstance(t, ast.Name) and k is not None]
    return out


def _gives(node: ast.AST, name: str, key: Key) -> bool:
    """Whether something in a statement gives a variable a value that isn't an entry of the state, nor what it was."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign):
            for target, value in pairs(inner):
                stored = {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                into = writes_into(value)
                itself = into is not None and ast.unparse(same(into)) == name
                twin = any(key(t) is not None for t in inner.targets)
                if name in stored and not itself and not twin and key(same(value)) is None:
                    return True
    return False


def _goes_back(body: Sequence[ast.stmt], entry: str, key: Key) -> bool:
    """Whether a variable goes into the state: ``state["exp_avg"] = exp_avg``, or its entry gets a value of its own."""
    assigned = [pair for s in body for n in symbols.walk(s) if isinstance(n, ast.Assign) for pair in pairs(n)]
    return any(key(target) == entry for target, _ in assigned)


class _Split:
    """Gives what a variable holds behind its second value another name."""

    def __init__(self, name: str, entry: str, key: Key, fresh: Callable[[str], str]) -> None:
        self.name, self.entry, self.key, self.fresh = name, entry, key, fresh

    def rest(self, body: Sequence[ast.stmt], later: set[str]) -> list[ast.stmt]:
        """Statements behind the one that makes it the entry; ``later`` are names that are read behind them."""
        at = next((i for i, s in enumerate(body) if _gives(s, self.name, self.key)), None)
        if at is None:
            return [*body]
        node, behind = body[at], [*body[at + 1 :]]
        read = self.name in later or any(self._reads(s) for s in behind)
        if isinstance(node, ast.Assign):
            new = self.fresh(self.name)
            value = copy.copy(node)
            value.targets = [renamed(t, {self.name: new}) for t in node.targets]
            need(self.name not in later, _WRITTEN.format(self.name, self.entry), node)
            return [*body[:at], value, *(renamed(s, {self.name: new}) for s in behind)]
        need(isinstance(node, ast.If), _WRITTEN.format(self.name, self.entry), node)
        assert isinstance(node, ast.If)
        if not read:
            parts = [self.rest(node.body, set()), self.rest(node.orelse, set())]
            return [*body[:at], ast.copy_location(ast.If(node.test, *parts), node), *behind]
        need(self.name not in later, _WRITTEN.format(self.name, self.entry), node)
        need(not any(map(self._writes, [node, *behind])), _WRITTEN.format(self.name, self.entry), node)
        new = self.fresh(self.name)
        first = ast.Assign([ast.Name(new, ast.Store())], ast.Name(self.name, ast.Load()))
        ast.fix_missing_locations(ast.copy_location(first, node))
        return [*body[:at], first, *(renamed(s, {self.name: new}) for s in [node, *behind])]

    def _reads(self, node: ast.AST) -> bool:
        return self.name in _names(node)

    def _writes(self, node: ast.AST) -> bool:
        """Whether a statement writes into the variable."""
        for inner in ast.walk(node):
            match inner:
                case ast.AugAssign(target=written) | ast.keyword(arg="out", value=written):
                    into: ast.expr | None = written
                case ast.Call():
                    into = writes_into(inner)
                case _:
                    continue
            if into is not None and isinstance(into := same(into), ast.Name) and into.id == self.name:
                return True
        return False
