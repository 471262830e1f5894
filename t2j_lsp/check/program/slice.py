"""Cuts out of a file (and of the files it imports) just the statements that one class or function depends on.

A check runs only what it needs of a user's program: no ``if __name__`` body, no training loop at module level, no
``__init__.py`` that imports a whole library. The result is a list of statement numbers per file; ``loading`` runs
them under the files' real names, so that tracebacks and ``inspect.getsource`` stay right.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from t2j_lsp.contract import SourceError
from t2j_lsp.symbols import bound_as

from .modules import ProgramModules
from .scopes import ModuleScope, Use, read_scope, uses
from .trimming import conditional_imports, is_main_guard
from .workspace import Workspace, find_workspace, read_text

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__package__", "__path__", "__spec__"}


_Item = tuple[str, str, tuple[str, ...]]
"""A module, a name that is needed of it, and the attributes read from that name's value."""


@dataclass(frozen=True)
class SlicedModule:
    """One file's part of a slice.

    ``keep`` lists the top-level statements to run, by index into the module's body; for an import statement, and an
    ``if`` around imports, also the names to import, and None for all of them.
    """

    name: str
    path: str
    text: str
    keep: tuple[tuple[int, tuple[str, ...] | None], ...]
    package: bool = False


@dataclass(frozen=True)
class Slice:
    """What one object needs. ``module`` is the dotted name of the file that defines ``name``."""

    module: str
    name: str
    modules: tuple[SlicedModule, ...]

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_plain(data: dict[str, Any]) -> Slice:
        modules = tuple(
            SlicedModule(m["name"], m["path"], m["text"], tuple((i, n) for i, n in m["keep"]), m["package"])
            for m in data["modules"]
        )
        return Slice(data["module"], data["name"], modules)

    @property
    def files(self) -> dict[str, SlicedModule]:
        """The files with statements to run, by path."""
        return {m.path: m for m in self.modules if m.keep}


@dataclass
class _KeptFile:
    """A file, and what is kept of it so far: names by the statement that binds them, None for all of it."""

    scope: ModuleScope
    path: Path
    text: str
    package: bool
    names: dict[int, set[str] | None] = field(default_factory=dict)


class Slicer:
    """Slices of one file. ``text`` stands for the file's content where given; ``read`` reads its neighbours.

    ``packages`` are the folders of packages that stand elsewhere, by the names under which they are imported. Slices
    that are ``as_written`` are to be read, and not only run: they have what annotations name.

    Raises:
        SourceError: the file can't be read or parsed. A neighbour that can't be is left to fail at import.
    """

    def __init__(
        self,
        path: Path,
        text: str | None = None,
        read: Callable[[Path], str] = read_text,
        packages: Mapping[str, Path] | None = None,
        as_written: bool = False,
    ) -> None:
        self.path = path.resolve()
        self.workspace: Workspace = replace(find_workspace(self.path), packages=tuple((packages or {}).items()))
        self.main = self.workspace.main
        self.as_written = as_written
        self._read = read
        try:
            self.text = read(self.path) if text is None else text
        except OSError as error:
            raise SourceError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        self.modules = ProgramModules(self.workspace, self.path, self.text, read)

    @property
    def scope(self) -> ModuleScope:
        """The names of the file itself."""
        return self.modules.scope

    def edited(self, text: str) -> Slicer:
        """The same file with another text."""
        return Slicer(self.path, text, self._read, dict(self.workspace.packages), self.as_written)

    def cut(self, name: str, extra: Iterable[str] = ()) -> Slice:
        """What ``name`` depends on. ``extra`` are expressions that will be evaluated in the file's namespace."""
        kept: dict[str, _KeptFile] = {}
        self._keep(kept, self.main)
        todo: list[_Item] = [(self.main, name, ())]
        for text in extra:
            todo += [(self.main, use.name, use.attributes) for use in uses(ast.parse(text, mode="eval"), True)]
        self._collect(kept, todo)
        return self._slice(kept, name)

    def whole(self) -> Slice:
        """All of the file, and what it needs of its neighbours."""
        kept: dict[str, _KeptFile] = {}
        part = self._keep(kept, self.main)
        assert part is not None
        todo: list[_Item] = []
        for statement in part.scope.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias in statement.names:
                    bound = bound_as(alias)
                    todo += self._follow(kept, self.main, part, statement, bound, ())
            todo += self._used(kept, self.main, part, statement)
        self._collect(kept, todo)
        part.names = dict.fromkeys(range(len(part.scope.body)))
        return self._slice(kept, "")

    def asked(self) -> Slice:
        """What the statements of the file, the program under ``if __name__`` too, name of its neighbours."""
        kept: dict[str, _KeptFile] = {}
        part = self._keep(kept, self.main)
        assert part is not None
        todo: list[_Item] = []
        for statement in part.scope.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            for one in statement.body if isinstance(statement, ast.If) and is_main_guard(statement) else [statement]:
                todo += self._used(kept, self.main, part, one)
        self._collect(kept, todo)
        return self._slice(kept, "")

    def _used(
        self, kept: dict[str, _KeptFile], module: str, part: _KeptFile, node: ast.AST, without: Container[ast.AST] = ()
    ) -> list[_Item]:
        """What a part of a module uses; imports ``without`` are left out."""
        annotations = self.as_written or not part.scope.future_annotations
        used = uses(node, annotations, without, as_written=self.as_written)
        return [item for use in used for item in self._use(kept, module, part, use)]

    def _collect(self, kept: dict[str, _KeptFile], todo: list[_Item]) -> None:
        """Keeps what is to do, and all that it needs."""
        done: set[_Item] = set()
        while todo:
            item = todo.pop()
            if item not in done:
                done.add(item)
                todo += self._need(kept, *item)

    def _slice(self, kept: dict[str, _KeptFile], name: str) -> Slice:
        return Slice(self.main, name, tuple(self._sliced(m, k) for m, k in sorted(kept.items())))

    def _sliced(self, name: str, kept: _KeptFile) -> SlicedModule:
        keep = {i: None if n is None else tuple(sorted(n)) for i, n in kept.names.items()}
        if keep:
            keep |= dict.fromkeys(kept.scope.future)
        return SlicedModule(name, str(kept.path), kept.text, tuple(sorted(keep.items())), kept.package)

    def _keep(self, kept: dict[str, _KeptFile], module: str) -> _KeptFile | None:
        if module in kept:
            return kept[module]
        scope = self.modules.load(module)
        path = self.path if module == self.main else self.workspace.find(module)
        if scope is None or path is None:
            return None
        kept[module] = _KeptFile(scope[0], path, scope[1], path.name == "__init__.py")
        parent = module.rpartition(".")[0]
        if parent and self._keep(kept, parent) is None:
            # A folder without __init__.py.
            kept[parent] = _KeptFile(read_scope("", ""), self.workspace.folder(parent), "", True)
        return kept[module]

    def _need(self, kept: dict[str, _KeptFile], module: str, name: str, attributes: tuple[str, ...]) -> list[_Item]:
        part = self._keep(kept, module)
        if part is None:
            return []
        scope = part.scope
        more: list[_Item] = []
        statements = scope.bindings.get(name)
        if statements is None:
            return self._from_star(part, module, name, attributes)
        for index in (*statements, *scope.mutations.get(name, ())):
            statement = scope.body[index]
            if imports := conditional_imports(statement):
                more += self._conditional(kept, module, part, index, imports, name, attributes)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                names = part.names.setdefault(index, set())
                assert names is not None
                names.add(name)
                more += self._follow(kept, module, part, statement, name, attributes)
            elif index not in part.names:
                part.names[index] = None
                more += self._used(kept, module, part, statement)
        return more

    def _conditional(
        self,
        kept: dict[str, _KeptFile],
        module: str,
        part: _KeptFile,
        index: int,
        imports: list[ast.Import | ast.ImportFrom],
        name: str,
        attributes: tuple[str, ...],
    ) -> list[_Item]:
        """What an ``if`` with imports needs: all of it, but of the imports only ``name``."""
        more: list[_Item] = []
        if index not in part.names:
            more += self._used(kept, module, part, part.scope.body[index], imports)
        names = part.names.setdefault(index, set())
        assert names is not None
        names.add(name)
        for statement in imports:
            more += self._follow(kept, module, part, statement, name, attributes)
        return more

    def _use(self, kept: dict[str, _KeptFile], module: str, part: _KeptFile, use: Use) -> list[_Item]:
        if use.statement is None:
            return (
                []
                if use.name in _BUILTINS and use.name not in part.scope.bindings
                else [(module, use.name, use.attributes)]
            )
        more = []
        for alias in use.statement.names:
            bound = bound_as(alias)
            more += self._follow(kept, module, part, use.statement, bound, ())
        return more

    def _follow(
        self,
        kept: dict[str, _KeptFile],
        module: str,
        part: _KeptFile,
        statement: ast.Import | ast.ImportFrom,
        name: str,
        attributes: tuple[str, ...],
    ) -> list[_Item]:
        """What the import of ``name`` by ``statement`` needs of the workspace."""
        if isinstance(statement, ast.Import):
            more = []
            for alias in statement.names:
                if bound_as(alias) == name:
                    first = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._keep(kept, alias.name)
                    more += self._module_value(kept, first, attributes)
            return more
        target = self.workspace.absolute(module, part.package, statement.level, statement.module)
        more = []
        for alias in statement.names:
            if bound_as(alias) != name or target is None:
                continue
            scope = self.modules.load(target)
            if scope is None and self.workspace.find(f"{target}.{alias.name}") is None:
                continue
            is_module = self.modules.has(target, alias.name)
            bound = is_module and self.modules.defines(target, alias.name)
            if scope is not None and (not is_module or bound and target != module):
                self._keep(kept, target)
                more.append((target, alias.name, attributes))
            else:
                more += self._module_value(kept, f"{target}.{alias.name}", attributes)
        return more

    def _module_value(self, kept: dict[str, _KeptFile], module: str, attributes: tuple[str, ...]) -> list[_Item]:
        """A module used as a value: the name that is read from it, or all its names."""
        part = self._keep(kept, module)
        if part is None:
            return []
        if not attributes:
            return [(module, name, ()) for name in part.scope.bindings]
        first, rest = attributes[0], attributes[1:]
        if self.modules.has(module, first) and not self.modules.defines(module, first):
            return self._module_value(kept, f"{module}.{first}", rest)
        return [(module, first, rest)]

    def _from_star(self, part: _KeptFile, module: str, name: str, attributes: tuple[str, ...]) -> list[_Item]:
        """Looks for ``name`` behind the ``from m import *`` of a module."""
        if name in _BUILTINS:
            return []
        for index in part.scope.stars:
            statement = part.scope.body[index]
            assert isinstance(statement, ast.ImportFrom)
            target = self.workspace.absolute(module, part.package, statement.level, statement.module)
            if target is None or self.modules.load(target) is None:
                part.names[index] = None  # Another library's: all of its names.
            elif self.modules.defines(target, name):
                names = part.names.setdefault(index, set())
                assert names is not None
                names.add(name)
                return [(target, name, attributes)]
        if "__getattr__" in part.scope.bindings:
            return [(module, "__getattr__", ())]
        return []
