"""The modules of a program's workspace: what each has at its top level, and what its names mean."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from t2j_lsp.symbols import bound_as

from .scopes import ModuleScope, read_scope
from .workspace import Workspace


class ProgramModules:
    """Reads each module once, when it is first asked for. The main one stands at ``path`` and has the text ``text``."""

    def __init__(self, workspace: Workspace, path: Path, text: str, read: Callable[[Path], str]) -> None:
        self.workspace = workspace
        self._read = read
        self.scope = read_scope(text, str(path))
        """The names of the main module."""
        self._scopes: dict[str, tuple[ModuleScope, str] | None] = {workspace.main: (self.scope, text)}

    def load(self, module: str) -> tuple[ModuleScope, str] | None:
        """The names and the text of a module of the workspace; None where it has no such module or it can't be read."""
        if module not in self._scopes:
            file = self.workspace.find(module)
            self._scopes[module] = None
            if file is not None:
                try:
                    text = self._read(file)
                    self._scopes[module] = (read_scope(text, str(file)), text)
                except (OSError, SyntaxError, ValueError):
                    pass
        return self._scopes[module]

    @property
    def neighbours(self) -> set[Path]:
        """The other files of the workspace that were read so far."""
        modules = [
            module for module, paths in self._scopes.items() if paths is not None and module != self.workspace.main
        ]
        return {file for module in modules if (file := self.workspace.find(module)) is not None}

    def defines(self, module: str, name: str, depth: int = 0) -> bool:
        """Whether a module of the workspace has ``name``, itself or by ``from m import *``."""
        scope = self.load(module)
        if scope is None or depth > 20:
            return False
        if name in scope[0].bindings:
            return True
        for index in scope[0].stars:
            statement = scope[0].body[index]
            assert isinstance(statement, ast.ImportFrom)
            target = self._target(module, statement)
            if target is not None and self.defines(target, name, depth + 1):
                return True
        return False

    def _target(self, module: str, statement: ast.ImportFrom) -> str | None:
        """The module that an import in ``module`` takes names from; None where it leads out of the workspace."""
        path = self.workspace.find(module)
        package = path is not None and path.name == "__init__.py"
        return self.workspace.absolute(module, package, statement.level, statement.module)

    def home(self, module: str, name: str, depth: int = 0) -> tuple[str, str] | None:
        """The module of the workspace that defines what ``name`` means in ``module``, and its name there."""
        scope = self.load(module)
        first, _, rest = name.partition(".")
        if scope is None or depth > 20 or first not in scope[0].bindings:
            return None
        statement = scope[0].body[scope[0].bindings[first][-1]]
        if not isinstance(statement, ast.ImportFrom):
            return None if rest or isinstance(statement, ast.Import) else (module, first)
        target = self._target(module, statement)
        original = next((a.name for a in statement.names if bound_as(a) == first), first)
        if target is None:
            return None
        if rest:
            return self.home(f"{target}.{original}", rest, depth + 1)
        return self.home(target, original, depth + 1)

    def library_name(self, module: str, name: str, depth: int = 0) -> str | None:
        """The full name of what ``name`` means in ``module``, where it is imported from a library.

        ``neural.Linear`` is ``torch.nn.Linear`` behind ``from torch import nn as neural``.
        """
        scope = self.load(module)
        first, _, rest = name.partition(".")
        if scope is None or depth > 20 or first not in scope[0].bindings:
            return None
        statement = scope[0].body[scope[0].bindings[first][-1]]
        if isinstance(statement, ast.Import):
            alias = next((a for a in statement.names if bound_as(a) == first), None)
            if alias is None:
                return None
            imported = alias.name if alias.asname else first
            if rest and self.load(imported) is not None:
                return self.library_name(imported, rest, depth + 1)
            return ".".join(part for part in (imported, rest) if part)
        if not isinstance(statement, ast.ImportFrom):
            return None
        target = self._target(module, statement)
        original = next((a.name for a in statement.names if bound_as(a) == first), first)
        if target is None:
            return None
        whole = ".".join(part for part in (original, rest) if part)
        return f"{target}.{whole}" if self.load(target) is None else self.library_name(target, whole, depth + 1)

    def has(self, package: str, name: str) -> bool:
        """Whether a package of the workspace has a module of that name."""
        return self.workspace.find(f"{package}.{name}") is not None
