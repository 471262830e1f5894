"""Variables of a definition that stand for a literal, and those that nobody reads."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

from t2j_lsp.translate.source.assignments import assigned

from .constants import folded
from .definitions import definition, nodes
from .literals import is_literal, literal

INDENT = "    "
_PURE = frozenset(("jnp", "jax", "math", "len", "min", "max", "tuple", "range", "getattr", "property"))
"""What a value that nobody reads may call."""


@cache
def without_idle_variables(text: str) -> str:
    """A definition with variables that are given one literal replaced by it, and without those that nobody reads.

    Each method of a class by itself: what a step makes of it is read for the next, and classes are long.
    """
    node = definition(text)
    if not isinstance(node, ast.ClassDef):
        return _settled(text)
    lines = text.splitlines(keepends=True)
    for method in reversed([s for s in node.body if isinstance(s, ast.FunctionDef)]):
        place = slice(min([method.lineno, *(d.lineno for d in method.decorator_list)]) - 1, method.end_lineno)
        if (alone := _dedented(lines[place])) is not None:
            lines[place] = [f"{INDENT}{line}" if line.strip() else line for line in _settled(alone).splitlines(True)]
    return "".join(lines)


def _dedented(lines: list[str]) -> str | None:
    """The lines of a method as those of a function, if no string goes on further left."""
    if not all(line.startswith(INDENT) or not line.strip() for line in lines):
        return None
    return "".join(line.removeprefix(INDENT) for line in lines)


@cache
def _settled(text: str) -> str:
    """A function after as many steps as change anything."""
    for _ in range(len(text)):
        changed = _once(text)
        if changed == text:
            break
        text = changed
    return text


@cache
def without_answer(text: str) -> str:
    """A function that nobody asks for its answer, without the statement that gives it, if that does nothing else."""
    match definition(text):
        case ast.FunctionDef(body=[_, *_, ast.Return(value=value) as last]) as node if value is not None:
            pass
        case _:
            return text
    names = [n for n in nodes(value) if isinstance(n, ast.Name)]
    made = all(isinstance(n, ast.Name | ast.Load | ast.Tuple | ast.Call) for n in nodes(value))
    kinds = all(
        isinstance(n.func, ast.Name) and n.func.id[0].isupper() for n in nodes(value) if isinstance(n, ast.Call)
    )
    returns = sum(isinstance(n, ast.Return) for n in nodes(node))
    if not names or not made or not kinds or returns != 1 or len(node.body) < 3:
        return text
    lines = text.splitlines(keepends=True)
    kept = "".join([*lines[: last.lineno - 1], *lines[last.end_lineno :]])
    said = ast.get_source_segment(text, node.returns) if node.returns is not None else None
    return kept.replace(f"-> {said}:", "-> None:", 1) if said else kept


def _once(text: str) -> str:
    function = definition(text)
    if not isinstance(function, ast.FunctionDef):
        return text
    constants = tuple((name, literal(value)) for name, value in _literals(function))
    if constants and (changed := folded(text, constants)) != text:
        return changed
    for statement, index in _unread(function):
        return without_assignment(text, statement, index)
    for name, other in _aliases(function):
        return folded(text, ((name, other),))
    return text


def _literals(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """The variables of a function that are assigned once, and a literal."""
    stores = Counter(n.id for n in nodes(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    taken = {n.arg for n in nodes(function) if isinstance(n, ast.arg)}
    for node in nodes(function):
        for target, value in assigned(node):
            if isinstance(target, ast.Name) and is_literal(value) and stores[target.id] == 1:
                if target.id not in taken:
                    yield target.id, value


def _aliases(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Variables that are given another one, once, and that other one, which keeps its value.

    So is an attribute of ``self`` that the variable stands for in one place.
    """
    stores = Counter(n.id for n in nodes(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    stores.update(n.arg for n in nodes(function) if isinstance(n, ast.arg))
    changing = {name for n in nodes(function) if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
    loops = (n for n in nodes(function) if isinstance(n, ast.For | ast.While))
    changing |= {n.id for one in loops for n in nodes(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes(function):
        for target, value in assigned(node):
            if isinstance(target, ast.Name) and isinstance(value, ast.Name) and target.id != value.id:
                if stores[target.id] == stores[value.id] == 1 and not {target.id, value.id} & changing:
                    yield target.id, value.id
            elif isinstance(target, ast.Name) and _is_own_attribute(value) and isinstance(node, ast.Assign):
                written = {ast.unparse(n) for n in nodes(function) if isinstance(getattr(n, "ctx", None), ast.Store)}
                reads = sum(isinstance(n, ast.Name) and n.id == target.id for n in nodes(function)) - 1
                if stores[target.id] == reads == 1 and target.id not in changing and ast.unparse(value) not in written:
                    yield target.id, ast.unparse(value)


def _is_own_attribute(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self"


def _unread(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, int]]:
    """Assignments whose value nobody reads, or that change nothing, and which of several values of one it is."""
    reads = {n.id for n in nodes(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    shared = {name for n in nodes(function) if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
    for node in nodes(function):
        for index, (target, value) in enumerate(assigned(node)):
            idle = isinstance(target, ast.Name) and target.id not in reads | shared and is_pure(value)
            if idle or isinstance(node, ast.Assign) and ast.unparse(target) == ast.unparse(value):
                assert isinstance(node, ast.stmt)
                yield node, index
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from ((statement, 0) for statement in _overwritten(body))


def _overwritten(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Assignments of a literal that another follows before anybody reads it."""
    for index, statement in enumerate(body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_literal(value):
                for later in body[index + 1 :]:
                    named = [n for n in nodes(later) if isinstance(n, ast.Name) and n.id == name]
                    if not named:
                        continue
                    plain = isinstance(later, ast.Assign) and len(named) == 1 and later.targets == named
                    if plain:
                        yield statement
                    break


def is_pure(value: ast.expr) -> bool:
    for node in nodes(value):
        if isinstance(node, ast.Call):
            root = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            if not isinstance(root, ast.Name) or root.id not in _PURE:
                return False
        elif isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
    return True


def without_assignment(text: str, statement: ast.stmt, index: int) -> str:
    """The text without an assignment, or without one of several that it makes."""
    lines = text.splitlines(keepends=True)
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    indent = lines[first - 1][: statement.col_offset]
    new: list[str] = []
    if isinstance(statement, ast.Assign) and len(pairs := assigned(statement)) > 1:
        kept = [pair for place, pair in enumerate(pairs) if place != index]
        targets, values = (
            ", ".join(ast.get_source_segment(text, n) or "" for n in part) for part in zip(*kept, strict=True)
        )
        new = [f"{indent}{targets} = {values}\n"]
    elif _is_alone(text, statement):
        new = [f"{indent}pass\n"]
    return "".join([*lines[: first - 1], *new, *lines[last:]])


def _is_alone(text: str, statement: ast.stmt) -> bool:
    """Whether a block has no other statement."""
    for node in nodes(definition(text)):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and len(body) == 1 and getattr(body[0], "lineno", 0) == statement.lineno:
                return True
    return False
