"""What the top-level statements of a file bind, change and use."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from t2j_lsp.contract import SourceError
from t2j_lsp.symbols import all_parameters, bindings, bound_names

from .trimming import is_main_guard, reads_annotations

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class Use:
    """A name that is read, with the attributes read from it; or an import inside a function."""

    name: str
    attributes: tuple[str, ...] = ()
    statement: ast.Import | ast.ImportFrom | None = None


@dataclass
class ModuleScope:
    """The statements of a module and the names they bind: statement indices, in order."""

    body: list[ast.stmt]
    bindings: dict[str, list[int]] = field(default_factory=dict)
    mutations: dict[str, list[int]] = field(default_factory=dict)
    stars: list[int] = field(default_factory=list)
    future: list[int] = field(default_factory=list)
    future_annotations: bool = False

    def statements(self, name: str) -> list[ast.stmt]:
        """The statements that bind a name."""
        return [self.body[index] for index in self.bindings.get(name, ())]


@lru_cache(maxsize=128)
def read_scope(text: str, path: str) -> ModuleScope:
    """Reads a file's top level, the same text once. Raises SourceError where it is not Python."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise SourceError(f"{path} is not Python: {getattr(error, 'msg', error)}", line) from error
    scope = ModuleScope(body)
    for index, statement in enumerate(body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            scope.future.append(index)
            scope.future_annotations |= any(a.name == "annotations" for a in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            scope.stars.append(index)
        else:
            for name in bound(statement):
                scope.bindings.setdefault(name, []).append(index)
    registering = _registering(body)
    for index, statement in enumerate(body):
        if _is_training(statement):
            continue
        for name in (*changed(statement), *_registered_in(statement, registering)):
            made_here = any(not isinstance(body[i], ast.Import | ast.ImportFrom) for i in scope.bindings.get(name, ()))
            if made_here and index not in (*scope.bindings[name], *scope.mutations.get(name, ())):
                scope.mutations.setdefault(name, []).append(index)
    return scope


def _is_training(statement: ast.stmt) -> bool:
    """Whether a statement is a loop that trains: it may fill lists with losses, and is not run for them."""
    if not isinstance(statement, ast.For | ast.While):
        return False
    calls = [n.func for n in ast.walk(statement) if isinstance(n, ast.Call)]
    methods = {f.attr for f in calls if isinstance(f, ast.Attribute)}
    return bool(methods & {"backward", "step", "zero_grad", "value_and_grad", "item"}) or any(
        isinstance(f, ast.Name) and f.id.startswith("train") for f in calls
    )


def _level(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes that run when the module does: without function bodies, class bodies and ``if __name__`` bodies."""
    todo: list[ast.AST] = [node]
    while todo:
        item = todo.pop(0)
        if is_main_guard(item):
            continue
        yield item
        if not isinstance(item, _INNER):
            todo += ast.iter_child_nodes(item)


def bound(statement: ast.stmt) -> list[str]:
    """The names that a statement binds when its module is imported."""
    return list(dict.fromkeys(name for name, _ in bindings([statement], without=is_main_guard)))


def changed(statement: ast.stmt) -> list[str]:
    """Names of objects that the statement may change: ``x.a = 1``, ``x[0] = 1``, ``x.update(...)``, ``del x[0]``.

    A decorator ``@x.register("name")`` or ``@x.register`` may change ``x``, too.
    """
    decorators = (
        d if isinstance(d, ast.Call) else ast.Call(d, [], []) for d in getattr(statement, "decorator_list", ())
    )
    nodes = [*_level(statement), *map(ast.Expr, decorators)]
    return [name for node in nodes if (name := _changed_by(node)) is not None]


def _changed_by(node: ast.AST) -> str | None:
    """The name of the object that a node may change."""
    target: ast.AST | None = None
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        target = node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        target = node.value.func.value if isinstance(node.value.func, ast.Attribute) else None
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _registering(body: list[ast.stmt]) -> dict[str, set[str]]:
    """What functions of a file change outside of them, and what making a subclass of a class of the file does."""
    registering: dict[str, set[str]] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and (names := _changed_outside(statement)):
            registering[statement.name] = names
        elif isinstance(statement, ast.ClassDef):
            methods = [m for m in statement.body if isinstance(m, ast.FunctionDef) and m.name == "__init_subclass__"]
            inherited = [b.id for b in statement.bases if isinstance(b, ast.Name) and b.id in registering]
            if methods or inherited:
                changed_there = [_changed_outside(m) for m in methods] + [registering[b] for b in inherited]
                registering[statement.name] = {statement.name}.union(*changed_there)
    return registering


def _changed_outside(function: ast.FunctionDef) -> set[str]:
    nodes = list(ast.walk(function))
    own = {n.arg for n in nodes if isinstance(n, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own -= {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
    return {name for node in nodes if (name := _changed_by(node)) is not None} - own


def _registered_in(statement: ast.stmt, registering: dict[str, set[str]]) -> Iterator[str]:
    """What a statement changes by a decorator, a call or a base: ``@register("mlp")`` puts a class into a dict."""
    called: list[ast.expr] = [*getattr(statement, "decorator_list", ())]
    if isinstance(statement, ast.ClassDef):
        called += statement.bases
    elif isinstance(statement, ast.Expr | ast.For | ast.If):
        called += [n.value for n in _level(statement) if isinstance(n, ast.Expr)]
    for node in called:
        while isinstance(node, ast.Call):
            node = node.func
        if isinstance(node, ast.Name):
            yield from sorted(registering.get(node.id, ()))


def uses(node: ast.AST, annotations: bool, without: Container[ast.AST] = (), *, as_written: bool = False) -> list[Use]:
    """Every global name that ``node`` may read when it runs or when what it defines runs.

    ``annotations`` says whether annotations are evaluated (no ``from __future__ import annotations``); those of
    functions that `reads_annotations` says nothing of are not. ``without`` are imports that are left out. With
    ``as_written``, also every name that stands in an annotation.
    """
    finder = _Uses(annotations, without)
    finder.read = as_written
    finder.visit(node)
    return finder.uses


class _Uses(ast.NodeVisitor):
    def __init__(self, annotations: bool, without: Container[ast.AST]) -> None:
        self.annotations = annotations
        self.without = without
        self.uses: list[Use] = []
        self.local: list[set[str]] = []
        self.read = False
        """Whether a decorator around may read annotations."""

    def _add(self, name: str, attributes: tuple[str, ...]) -> None:
        if not any(name in names for names in self.local):
            self.uses.append(Use(name, attributes))

    def visit_If(self, node: ast.If) -> None:
        if not is_main_guard(node):
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._add(node.id, ())

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._add(node.target.id, ())
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        attributes: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            attributes.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self._add(inner.id, tuple(attributes))
        else:
            self.visit(inner)

    def visit_Import(self, node: ast.Import) -> None:
        if node not in self.without:
            self.uses.append(Use("", (), node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module != "__future__" and node not in self.without:
            self.uses.append(Use("", (), node))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if self.annotations and not self.local:
            self.visit(node.annotation)
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        with self._inside(node):
            self.generic_visit(node)

    @contextmanager
    def _inside(self, node: _Function | ast.ClassDef | ast.Lambda) -> Iterator[None]:
        before = self.read
        self.read |= not isinstance(node, ast.Lambda) and reads_annotations(node)
        yield
        self.read = before

    def _visit_function(self, node: _Function | ast.Lambda) -> None:
        with self._inside(node):
            self._function(node)

    def _function(self, node: _Function | ast.Lambda) -> None:
        arguments = node.args
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
            self.visit(default)
        parameters = all_parameters(node)
        body: list[ast.stmt] | list[ast.expr]
        if isinstance(node, ast.Lambda):
            body = [node.body]
        else:
            for decorator in node.decorator_list:
                self.visit(decorator)
            if self.annotations and self.read:
                for annotation in (*(p.annotation for p in parameters), node.returns):
                    if annotation is not None:
                        self.visit(annotation)
            body = node.body
        names = {p.arg for p in parameters}
        if not isinstance(node, ast.Lambda):
            names |= bound_names(node.body)
        self.local.append(names)
        for statement in body:
            self.visit(statement)
        self.local.pop()

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function
    visit_Lambda = _visit_function

    def _visit_comprehension(self, node: _Comprehension) -> None:
        names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.visit(node.generators[0].iter)
        self.local.append(names)
        self.generic_visit(node)
        self.local.pop()

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_DictComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension
