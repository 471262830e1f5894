"""Names of a text: which scope binds which, as the interpreter itself decides; what a node stands in, and what in it.

``symtable`` is asked once for a text. It knows every way to bind a name (imports inside functions, ``except ... as``,
captures of ``match``, walrus, ``global``), so that no pass has a list of its own.

A conversion walks a file some thirty times. `walk` and `children` take half the time of those of ``ast``: left out is
what no pass can use, fields with names or numbers and contexts (``ast.Load``, ``ast.Store``, ``ast.Del``). While
`kept_walks` lasts, what was walked to its end is not walked again.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TypeVar

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
ScopeNode = FunctionNode | ast.ClassDef | ast.Lambda | Comprehension

Kind = TypeVar("Kind", bound=ast.AST)

_COMPREHENSION_TARGET = 2 << 8
"""``DEF_COMP_ITER``: from Python 3.12 on, the table of a function lists the targets of its comprehensions too."""

_LEAVES = frozenset({
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "name", "simple",
    "type_comment",
})  # fmt: skip
"""Fields that hold no node, or a context."""


class _Parts(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        if issubclass(kind, ast.Constant | ast.Global | ast.Nonlocal):
            parts: tuple[str, ...] = ()
        elif kind.__name__ == "TypeAlias":  # Python 3.12's, whose name is a node.
            parts = kind._fields
        else:
            parts = tuple(field for field in kind._fields if field not in _LEAVES)
        self[kind] = parts
        return parts


_PARTS = _Parts()


class Symbols:
    """The scopes of one text. Raises SyntaxError where the interpreter finds its names wrong (``global`` after use)."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.tree = tree
        self._top = symtable.symtable(text, "<text>", "exec")
        self._tables: dict[tuple[str, int], symtable.SymbolTable] = {}
        self._classes: dict[symtable.SymbolTable, str] = {}
        """The class whose private names a table spells out."""
        self._bound: dict[ast.AST, frozenset[str]] = {}
        self._says_global = "global " in text
        self._read(self._top, "")

    def _read(self, table: symtable.SymbolTable, class_name: str) -> None:
        kind = str(table.get_type())
        if kind == "class":
            class_name = table.get_name().lstrip("_")
        self._classes[table] = class_name
        # The table of a comprehension may bear a function's name and line: only it has the parameter ".0".
        if kind == "class" or kind == "function" and ".0" not in table.get_identifiers():
            self._tables.setdefault((table.get_name(), table.get_lineno()), table)
        for child in table.get_children():
            self._read(child, class_name)

    @cached_property
    def bound_again(self) -> frozenset[str]:
        """Names of the module level that functions bind, too: ``global act``."""
        symbols = [s for table in self._classes for s in table.get_symbols()] if self._says_global else []
        return frozenset(s.get_name() for s in symbols if s.is_declared_global() and s.is_assigned())

    # --- what a scope binds ---------------------------------------------------------------------------------------

    def bound(self, scope: ScopeNode | ast.Module) -> frozenset[str]:
        """Names that belong to a scope itself: its parameters, and whatever it binds and doesn't declare global."""
        names = self._bound.get(scope)
        if names is None:
            names = self._bound[scope] = frozenset(self._bound_by(scope))
        return names

    def _bound_by(self, scope: ScopeNode | ast.Module) -> Iterator[str]:
        match scope:
            case ast.Module():
                yield from self.module
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from self._locals(self._tables[scope.name, scope.lineno])
                yield from type_parameters(scope)
            case ast.Lambda():
                yield from parameter_names(scope)
                yield from _walruses(scope.body)
            case _:
                targets = (n for g in scope.generators for n in walk(g.target))
                yield from (n.id for n in targets if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))

    def _locals(self, table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_local() and not _is_comprehension_target(symbol):
                yield self._plain(symbol.get_name(), table)

    def _plain(self, name: str, table: symtable.SymbolTable) -> str:
        """A name as it stands in the text: inside a class the interpreter writes ``_Net__x`` for ``__x``."""
        prefix = f"_{self._classes[table]}"
        return name.removeprefix(prefix) if len(prefix) > 1 and name.startswith(prefix + "__") else name

    @cached_property
    def module(self) -> frozenset[str]:
        """Names that the module level binds, or a function for it after ``global``. Not those of ``import *``."""
        return self._assigned_globals | frozenset(self._locals(self._top))

    @cached_property
    def _assigned_globals(self) -> frozenset[str]:
        """Names that functions bind after ``global``."""
        symbols = (s for table in self._tables.values() for s in table.get_symbols() if s.is_declared_global())
        return frozenset(s.get_name() for s in symbols if s.is_assigned() or s.is_imported())

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name of the text, in whatever scope."""
        return self._names_in(self._top)

    def within(self, scope: FunctionNode | ast.ClassDef) -> frozenset[str]:
        """Every name that a function or class mentions, with the scopes inside it."""
        return self._names_in(self._tables[scope.name, scope.lineno])

    def _names_in(self, table: symtable.SymbolTable) -> frozenset[str]:
        names = {self._plain(name, table) for name in table.get_identifiers() if not name.startswith(".")}
        return frozenset(names.union(*(self._names_in(child) for child in table.get_children())))

    @cached_property
    def unbound(self) -> frozenset[str]:
        """Names that are read and that nothing in the text binds: an ``import *`` brings them, if anything does."""
        read: set[str] = set()
        for table in self._classes:
            symbols = (s for s in table.get_symbols() if not _is_comprehension_target(s))
            read.update(s.get_name() for s in symbols if s.is_global() and s.is_referenced())
        return frozenset(read - self.module - set(dir(builtins)))

    # --- where a name belongs to ----------------------------------------------------------------------------------

    def home(self, name: str, around: Sequence[ScopeNode]) -> ScopeNode | None:
        """The scope, of those around a place (innermost first), that a name means there; None for the module level."""
        for index, scope in enumerate(around):
            if isinstance(scope, ast.ClassDef) and index > 0:
                if name in type_parameters(scope):
                    return scope
                continue  # methods don't see the names of their class
            if isinstance(scope, FunctionNode | ast.ClassDef) and self._is_global(name, scope):
                return None
            if name in self.bound(scope):
                return scope
        return None

    def is_free(self, name: str, around: Sequence[ScopeNode]) -> bool:
        """Whether the function at a place reads a name of what is around it: binding it there makes another one."""
        function = next((scope for scope in around if isinstance(scope, FunctionNode)), None)
        table = self._tables[function.name, function.lineno] if function is not None else None
        if table is None or name not in table.get_identifiers():
            return False
        symbol = table.lookup(name)
        return not (symbol.is_local() or symbol.is_declared_global() or symbol.is_nonlocal())

    def _is_global(self, name: str, scope: FunctionNode | ast.ClassDef) -> bool:
        table = self._tables[scope.name, scope.lineno]
        return name in table.get_identifiers() and table.lookup(name).is_declared_global()

    # --- imports --------------------------------------------------------------------------------------------------

    def imports(self, scope: ScopeNode | None) -> Mapping[str, frozenset[str]]:
        """What the imports of a scope (None: the module level) bind: dotted names, with leading dots if relative.

        A name that something else than an import binds too isn't here.
        """
        return self._imports.get(scope, {})

    @cached_property
    def stars(self) -> tuple[ast.ImportFrom, ...]:
        """Every ``from module import *``."""
        imports = (n for n in walk(self.tree) if isinstance(n, ast.ImportFrom))
        return tuple(n for n in imports if n.names[0].name == "*")

    @cached_property
    def _imports(self) -> dict[ScopeNode | None, dict[str, frozenset[str]]]:
        imports: dict[ScopeNode | None, dict[str, frozenset[str]]] = {}
        stack: list[tuple[ast.AST, ScopeNode | None]] = [(self.tree, None)]
        while stack:
            node, scope = stack.pop()
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._add_import(node, scope, imports.setdefault(scope, {}))
            elif isinstance(node, FunctionNode | ast.ClassDef):
                scope = node
            stack += [(n, scope) for n in children(node) if not isinstance(n, ast.expr)]
        return imports

    def _add_import(
        self, node: ast.Import | ast.ImportFrom, scope: ScopeNode | None, targets: dict[str, frozenset[str]]
    ) -> None:
        table = self._tables[scope.name, scope.lineno] if isinstance(scope, FunctionNode | ast.ClassDef) else self._top
        for name, target in imported(node):
            shared = scope is None and name in self._assigned_globals
            if name in table.get_identifiers() and not table.lookup(name).is_assigned() and not shared:
                targets[name] = targets.get(name, frozenset()) | {target}


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, and what it means."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif alias.name != "*":
            module = "." * node.level + (node.module or "")
            dot = "." if module.strip(".") else ""
            yield alias.asname or alias.name, f"{module}{dot}{alias.name}"


def bound_as(alias: ast.alias) -> str:
    """The name that an import binds: ``a`` for ``import a.b``."""
    return (alias.asname or alias.name).partition(".")[0]


def bindings(
    code: Iterable[ast.AST], without: Callable[[ast.AST], bool] = lambda node: False
) -> Iterator[tuple[str, ast.AST]]:
    """Each name that code gives a value in the scope it stands in, with the node that does, in the order of the text.

    What functions, classes, lambdas and comprehensions bind is theirs, but for ``:=`` in comprehensions. What an
    ``import *`` brings isn't known. Statements that are to be left ``without`` bind nothing.
    """
    for node in _of_scope(code, without):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                yield from ((name, node) for name in _walruses(node))
            case ast.Name(id=name, ctx=ast.Store()) | ast.MatchMapping(rest=str(name)):
                yield name, node
            case ast.Import() | ast.ImportFrom():
                yield from ((bound_as(alias), node) for alias in node.names if alias.name != "*")
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node


def bound_names(code: Iterable[ast.AST]) -> frozenset[str]:
    """The names that are a scope's own because some code in it binds or deletes them."""
    nodes = [*code]
    names = {name for name, _ in bindings(nodes)}
    elsewhere: set[str] = set()
    for node in _of_scope(nodes):
        if isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            names.add(node.id)
    return frozenset(names - elsewhere)


def _of_scope(code: Iterable[ast.AST], without: Callable[[ast.AST], bool] = lambda node: False) -> Iterator[ast.AST]:
    """The nodes of some code that belong to the scope it stands in, in the order of the text."""
    stack = [*code][::-1]
    while stack:
        node = stack.pop()
        if without(node):
            continue
        yield node
        if isinstance(node, FunctionNode | ast.ClassDef):
            stack += node.decorator_list[::-1]
        elif not isinstance(node, ast.Lambda | Comprehension):
            stack += children(node)[::-1]


def called_decorator(node: ast.expr) -> ast.expr:
    """What decorates: ``cached`` of ``@cached(size=2)``, as of ``@cached``."""
    return node.func if isinstance(node, ast.Call) else node


def is_super(node: ast.AST | None) -> bool:
    """Whether it is ``super(...)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def positional_parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function that may be given by place, but ``*args``."""
    return [*function.args.posonlyargs, *function.args.args]


def named_parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function but ``*args`` and ``**kwargs``."""
    return [*positional_parameters(function), *function.args.kwonlyargs]


def all_parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function, ``*args`` and ``**kwargs`` last."""
    return [*named_parameters(function), *filter(None, (function.args.vararg, function.args.kwarg))]


def parameter_names(function: FunctionNode | ast.Lambda) -> set[str]:
    """The names of all parameters of a function, ``*args`` and ``**kwargs`` too."""
    return {a.arg for a in all_parameters(function)}


def type_parameters(node: ast.AST) -> frozenset[str]:
    """The type parameters of a function or class: ``T`` of ``def f[T](x: T)``, from Python 3.12 on."""
    return frozenset(parameter.name for parameter in getattr(node, "type_params", ()))


def defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, each with it."""
    plain = [*arguments.posonlyargs, *arguments.args]
    by_place = zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [*by_place, *((a, default) for a, default in by_name if default is not None)]


def ancestors(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """What a node stands in, from the inside out."""
    at = parents.get(node)
    while at is not None:
        yield at
        at = parents.get(at)


def is_callee(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a node is what a call calls."""
    parent = parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node


def with_ancestors(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """A node, and what it stands in, from the inside out."""
    yield node
    yield from ancestors(node, parents)


def nearest(kind: type[Kind], node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Kind | None:
    """A node itself, or the innermost around it, that is of a kind; None where there is none."""
    return next((at for at in with_ancestors(node, parents) if isinstance(at, kind)), None)


def function_around(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function that a node stands in; None at the module level."""
    return next((at for at in ancestors(node, parents) if isinstance(at, FunctionNode)), None)


def statement_of_the_file(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.stmt:
    """The statement of the top level that a node is or stands in."""
    *_, outer = (at for at in with_ancestors(node, parents) if isinstance(at, ast.stmt))
    return outer


def scopes_around(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> list[ScopeNode]:
    """The scopes that a node stands in, innermost first; decorators, defaults and bases stand outside of theirs."""
    scopes: list[ScopeNode] = []
    below, at = node, parents.get(node)
    while at is not None:
        match at:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if isinstance(below, ast.stmt):
                    scopes.append(at)
            case ast.Lambda():
                if below is at.body:
                    scopes.append(at)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = at.generators[0]
                if below is not first or not _stands_in(node, first.iter, parents):
                    scopes.append(at)
        below, at = at, parents.get(at)
    return scopes


def _stands_in(node: ast.AST, outer: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return any(at is outer for at in with_ancestors(node, parents))


def _walruses(node: ast.AST) -> Iterator[str]:
    """Names that ``:=`` binds in a lambda's body: in comprehensions too, not in lambdas inside."""
    if isinstance(node, ast.NamedExpr):
        yield node.target.id
    for child in children(node):
        if not isinstance(child, ast.Lambda):
            yield from _walruses(child)


def _is_comprehension_target(symbol: symtable.Symbol) -> bool:
    if sys.version_info < (3, 12):
        return False
    return bool(vars(symbol)["_Symbol__flags"] & _COMPREHENSION_TARGET)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, contexts left out, in the order of ``ast.iter_child_nodes``."""
    nodes: list[ast.AST] = []
    for field in _PARTS[node.__class__]:
        value = getattr(node, field, None)
        if value.__class__ is list:
            nodes += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            nodes.append(value)
    return nodes


def own_nodes(code: ast.AST) -> Iterator[ast.AST]:
    """The nodes in some code, without what stands in functions, lambdas and classes that are defined in it."""
    stack = children(code)[:]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.Lambda | ast.ClassDef):
            stack += children(node)


def blocks(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """Every list of statements of a scope, outermost first, without those of nested functions and classes."""
    yield body
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for inner in own_blocks(node):
            yield from blocks(inner)


def own_blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a compound statement itself, in source order but for handlers and cases."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(node, name, None)
        if inner:
            yield inner
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield part.body


_Walks = dict[ast.AST, list[ast.AST]]
_walks: ContextVar[_Walks | None] = ContextVar("walks", default=None)


@contextmanager
def kept_walks() -> Iterator[None]:
    """Keep what is below each node that is walked: for a time in which no tree is changed that was walked."""
    token = _walks.set({})
    try:
        yield
    finally:
        _walks.reset(token)


def walk(node: ast.AST) -> Iterable[ast.AST]:
    """The node and all below it, contexts left out, in the order of ``ast.walk``."""
    kept = _walks.get()
    return _walked(node, kept) if kept is None or node not in kept else kept[node]


def _walked(node: ast.AST, kept: _Walks | None) -> Iterator[ast.AST]:
    nodes = [node]
    add = nodes.append
    for one in nodes:
        for field in _PARTS[one.__class__]:
            value = getattr(one, field, None)
            if value.__class__ is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        add(item)
            elif isinstance(value, ast.AST):
                add(value)
        yield one
    if kept is not None:
        kept[node] = nodes
