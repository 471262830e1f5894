"""What a step collects in lists for a function: ``exp_avgs.append(state["exp_avg"])`` is the item of a parameter."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence

from t2j_lsp import symbols

from .names import same
from .unfit import need


def empty_lists(node: ast.stmt) -> set[str]:
    """The variables that a statement gives empty lists."""
    match node:
        case ast.Assign(targets=targets, value=ast.List(elts=[])) if all(isinstance(t, ast.Name) for t in targets):
            return {t.id for t in targets if isinstance(t, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.List(elts=[])):
            return {name}
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            empty = all(isinstance(v, ast.List) and not v.elts for v in values)
            return {n.id for n in names if isinstance(n, ast.Name)} if empty and values else set()
    return set()


class CollectedItems:
    """What each list has of a parameter."""

    def __init__(self, lists: set[str], parameter: str, stored: Iterable[str]) -> None:
        self.lists, self.parameter, self.stored = lists, parameter, set(stored)
        self.items: dict[str, ast.expr] = {}
        self.optional: set[str] = set()
        """Lists of what a state may not have yet, with ``None`` in its place."""

    def without_appends(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements without those that collect, of which the items are kept. Raises Unfit."""
        out: list[ast.stmt] = []
        for node in body:
            match node:
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item])
                ) if name in self.lists:
                    need(name not in self.items, f"what it collects in {name}", node)
                    out += self._kept(name, item)
                    continue
                case ast.If():
                    if (listed := _of_new_state(node)) is not None and listed[0] in self.lists:
                        need(listed[0] not in self.items, f"what it collects in {listed[0]}", node)
                        self.items[listed[0]] = listed[1]
                        self.optional.add(listed[0])
                        continue
                    node.body = self.without_appends(node.body) or [ast.copy_location(ast.Pass(), node)]
                    node.orelse = self.without_appends(node.orelse)
            out.append(node)
        return out

    def _kept(self, name: str, item: ast.expr) -> list[ast.stmt]:
        """What computes an item, if it is no name of a tensor that stays what it is."""
        if (entry := _entry_or_none(item)) is not None:
            self.items[name] = entry
            self.optional.add(name)
            return []
        if isinstance(item, ast.Tuple):
            names = [f"{name}_item{at}" for at in range(len(item.elts))]
            self.items[name] = ast.copy_location(ast.Tuple([ast.Name(n, ast.Load()) for n in names], ast.Load()), item)
            ast.fix_missing_locations(self.items[name])
            return [given(n, part) for n, part in zip(names, item.elts, strict=True)]
        inner = same(item)
        plain = isinstance(inner, ast.Subscript) or isinstance(item, ast.Attribute) or isinstance(inner, ast.Name)
        if isinstance(inner, ast.Name) and inner.id != self.parameter and inner.id in self.stored:
            plain = False
        self.items[name] = item if plain else ast.copy_location(ast.Name(f"{name}_item", ast.Load()), item)
        return [] if plain else [given(f"{name}_item", item)]

    def item(self, name: str) -> ast.expr | None:
        """What a list has of the parameter."""
        return copy.deepcopy(self.items.get(name))


def given(name: str, value: ast.expr) -> ast.stmt:
    """``name = value``."""
    made = ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value))
    return ast.fix_missing_locations(ast.copy_location(made, value))


def _entry_or_none(node: ast.expr) -> ast.expr | None:
    """``state["buffer"]`` for ``state.get("buffer")``."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=state, attr="get"),
            args=[ast.Constant(value=str()) as key] | [ast.Constant(value=str()) as key, ast.Constant(value=None)],
        ) if _is_state(state):
            return ast.copy_location(ast.Subscript(state, key, ast.Load()), node)
    return None


def _is_state(node: ast.expr) -> bool:
    """Whether it may be the state of a parameter: a variable, or ``self.state[p]``."""
    return isinstance(node, ast.Name) or ast.unparse(node).startswith("self.state[")


def _of_new_state(node: ast.If) -> tuple[str, ast.expr] | None:
    """The list that gets an entry of the state, or ``None`` where there is none yet, and the entry."""
    match node.test:
        case ast.Compare(left=ast.Constant(value=key), ops=[ast.In() | ast.NotIn() as op], comparators=[state]):
            absent, present = (node.orelse, node.body) if isinstance(op, ast.In) else (node.body, node.orelse)
        case _:
            return None
    match absent, present:
        case (
            [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=one), attr="append"), args=[none]))],
            [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=two), attr="append"), args=[entry]))],
        ) if one == two and isinstance(none, ast.Constant) and none.value is None:
            named = isinstance(entry, ast.Subscript) and ast.unparse(entry) == f"{ast.unparse(state)}[{key!r}]"
            return (one, entry) if named else None
    return None


def with_tests_of_states(body: Sequence[ast.stmt], optional: set[str]) -> list[ast.stmt]:
    """Statements in which ``buffer = state["buffer"]; if buffer is None:`` asks the state, and reads it where it is.

    ``optional`` are entries that a state may not have yet; so is what ``state.get("buffer")`` gives.
    """
    out: list[ast.stmt] = []
    waiting: dict[str, tuple[ast.Assign, ast.expr]] = {}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                entry = value if ast.unparse(value) in optional else _entry_or_none(value)
                if entry is not None:
                    waiting[name] = node, entry
            case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)])):
                read, entry = waiting.get(name, (None, None))
                between = out[out.index(read) + 1 :] if read in out else []
                used = any(isinstance(n, ast.Name) and n.id == name for s in between for n in ast.walk(s))
                if read is not None and entry is not None and not used and isinstance(op, ast.Is | ast.IsNot):
                    out.remove(read)
                    out.append(_asked(node, name, entry, isinstance(op, ast.Is)))
                    continue
            case ast.If():
                made = [with_tests_of_states(node.body, optional), with_tests_of_states(node.orelse, optional)]
                if made != [node.body, node.orelse]:
                    node = ast.copy_location(ast.If(node.test, *made), node)
        out.append(node)
    return out


def _asked(node: ast.If, name: str, entry: ast.expr, absent: bool) -> ast.stmt:
    """``if "buffer" not in state: ... else: buffer = state["buffer"] ...``."""
    assert isinstance(entry, ast.Subscript)
    test = ast.Compare(entry.slice, [ast.NotIn()], [copy.deepcopy(entry.value)])
    first, later = (node.body, node.orelse) if absent else (node.orelse, node.body)
    read = ast.copy_location(given(name, entry), node)
    made = ast.If(test, list(first) or [ast.Pass()], [read, *later])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def stored_names(functions: Iterable[ast.FunctionDef]) -> set[str]:
    """The variables that functions give values."""
    nodes = (n for function in functions for n in symbols.walk(function))
    return {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
