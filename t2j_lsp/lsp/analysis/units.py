"""Cuts a program into its top-level statements, and knows which of them depend on which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from t2j_lsp.symbols import all_parameters, bound_as

from .model import DefinitionKind
from .scripts import starts, training_functions

Skeleton = tuple[DefinitionKind, str, int, int, int]
"""Kind, name, first and last line, depth; lines count from 0 at the unit's first line."""


@dataclass(frozen=True)
class Unit:
    """One or more top-level statements that share lines. Lines from 1, decorators included."""

    first: int
    last: int
    text: str
    about: About


@dataclass(frozen=True)
class About:
    """What does not depend on where a unit stands."""

    defines: frozenset[str]
    loads: frozenset[str]
    imports: bool
    skeletons: tuple[Skeleton, ...]
    aliases: tuple[tuple[str, str], ...]
    """Imported names and the qualified name that each stands for."""
    trains: frozenset[str] = frozenset()
    """The functions that train."""
    starts: frozenset[str] = frozenset()
    """What it does of a program, as `scripts.starts` has it."""


def cut(lines: list[str], tree: ast.Module, known: dict[str, About]) -> list[Unit]:
    """The units of a program, in order. ``known`` gives what was found out of units with the same text."""
    groups: list[tuple[int, int, list[ast.stmt]]] = []
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        last = node.end_lineno or node.lineno
        if groups and first <= groups[-1][1]:
            start, end, nodes = groups[-1]
            groups[-1] = (start, max(end, last), [*nodes, node])
        else:
            groups.append((first, last, [node]))
    units = []
    for first, last, nodes in groups:
        text = "".join(lines[first - 1 : last])
        about = known.get(text) or _about(nodes, first)
        units.append(Unit(first, last, text, about))
    return units


def _about(nodes: list[ast.stmt], first: int) -> About:
    names = _Names()
    try:
        for node in nodes:
            names.visit(node)
    except RecursionError:
        # Its translation says so, with the line.
        return About(frozenset(), frozenset(), False, (), ())
    skeletons = [s for node in nodes for s in _skeletons(node, first, "", 0)]
    only_imports = all(isinstance(n, ast.Import | ast.ImportFrom) for n in nodes)
    aliases = [pair for node in nodes for pair in _aliases(node)]
    about = frozenset(names.stores), frozenset(names.free()), only_imports, tuple(skeletons), tuple(aliases)
    return About(*about, frozenset(training_functions(nodes)), frozenset(starts(nodes)))


class _Names(ast.NodeVisitor):
    """The names that one scope binds, and those that it or scopes inside of it read from outside."""

    def __init__(self) -> None:
        self.stores: set[str] = set()
        self.loads: set[str] = set()
        self.inner: set[str] = set()
        self.outer: set[str] = set()
        """Names that are declared global or nonlocal: bound elsewhere."""

    def free(self) -> set[str]:
        return self.loads | self.inner

    def visit_Name(self, node: ast.Name) -> None:
        (self.loads if isinstance(node.ctx, ast.Load) else self.stores).add(node.id)

    def visit_alias(self, node: ast.alias) -> None:
        self.stores.add(bound_as(node))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.stores.update({node.name} if node.name else ())
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.stores.add(node.name)
        arguments = all_parameters(node)
        annotations = [a.annotation for a in arguments if a.annotation is not None]
        annotations += [node.returns] if node.returns is not None else []
        for one in [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *annotations]:
            self.visit(one)
        for annotation in annotations:
            self._string_names(annotation)
        self._scope(node.args, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        self._string_names(node.annotation)

    def _string_names(self, annotation: ast.AST) -> None:
        """Names in annotations that are strings."""
        for part in ast.walk(annotation):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                self.loads.update(re.findall(r"(?<![\w.])[A-Za-z_]\w*", part.value))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self._scope(node.args, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.stores.add(node.name)
        for one in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(one)
        inside = _Names()
        for statement in node.body:
            inside.visit(statement)
        # What a class binds is not seen by the functions in it.
        self.inner |= (inside.loads - inside.stores) | inside.inner

    def _scope(self, arguments: ast.arguments, body: Iterable[ast.AST]) -> None:
        inside = _Names()
        inside.stores = {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)}
        for node in body:
            inside.visit(node)
        self.inner |= inside.free() - (inside.stores - inside.outer)


def _skeletons(node: ast.AST, origin: int, prefix: str, depth: int) -> Iterable[Skeleton]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        kind: DefinitionKind = "class" if isinstance(node, ast.ClassDef) else "function"
        name = prefix + node.name
        yield kind, name, first - origin, (node.end_lineno or first) - origin, depth
        prefix, depth = f"{name}.", depth + 1
    elif isinstance(node, ast.For | ast.While):
        yield "loop", "loop", node.lineno - origin, (node.end_lineno or node.lineno) - origin, depth
        depth += 1
    for block in ("body", "orelse", "finalbody", "handlers"):
        for child in getattr(node, block, ()):
            if isinstance(child, ast.stmt | ast.ExceptHandler):
                yield from _skeletons(child, origin, prefix, depth)


def closure(units: list[Unit], wanted: Iterable[int]) -> set[int]:
    """The units that the wanted ones need, themselves and all imports included, by index."""
    definers: dict[str, list[int]] = {}
    for index, unit in enumerate(units):
        for name in unit.about.defines:
            definers.setdefault(name, []).append(index)
    kept = {index for index, unit in enumerate(units) if unit.about.imports}
    todo = list(wanted)
    while todo:
        index = todo.pop()
        if index not in kept or units[index].about.imports:
            kept.add(index)
            if not units[index].about.imports:
                todo += [d for name in units[index].about.loads for d in definers.get(name, ()) if d not in kept]
    return kept


def groups(units: list[Unit]) -> list[set[int]]:
    """The units that hang together by the names they define and load, imports aside."""
    definers: dict[str, list[int]] = {}
    plain = [index for index, unit in enumerate(units) if not unit.about.imports]
    for index in plain:
        for name in units[index].about.defines:
            definers.setdefault(name, []).append(index)
    home = {index: {index} for index in plain}
    for index in plain:
        for name in units[index].about.loads:
            for other in definers.get(name, ()):
                if home[other] is not home[index]:
                    merged = home[other] | home[index]
                    for member in merged:
                        home[member] = merged
    return list({id(group): group for group in home.values()}.values())


def only(lines: list[str], units: list[Unit], kept: Iterable[int]) -> str:
    """The program with every other line blank, so that places stay."""
    wanted: set[int] = set()
    for index in kept:
        wanted.update(range(units[index].first - 1, units[index].last))
    return "".join(line if i in wanted else line[len(line.rstrip("\r\n")) :] for i, line in enumerate(lines))


def _aliases(tree: ast.stmt) -> Iterable[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield alias.asname or top, alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                if alias.name != "*":
                    yield bound_as(alias), f"{node.module}.{alias.name}"
