"""Runs a slice inside a worker: synthetic modules under the files' real names, found by a meta path finder."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any

from t2j_lsp.check.arguments.command_line import GIVEN
from t2j_lsp.check.program.marks import MARK, RAN, marked
from t2j_lsp.check.program.slice import Slice, SlicedModule
from t2j_lsp.check.program.trimming import trimmed

Transform = Callable[[ast.Module, str], ast.Module]


def slice_tree(module: SlicedModule) -> ast.Module:
    """The statements of a file to run."""
    body = ast.parse(module.text).body
    return ast.Module([trimmed(body[index], names) for index, names in module.keep], [])


def compile_slice(module: SlicedModule, transform: Transform | None = None) -> CodeType:
    """The code of a file's part, with marks (see `marks`). Line numbers are the file's."""
    tree = marked(slice_tree(module))
    if transform is not None:
        tree = transform(tree, module.path)
    return compile(ast.fix_missing_locations(tree), module.path, "exec", dont_inherit=True)


class _SliceFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, modules: dict[str, SlicedModule], transform: Transform | None, names: dict[str, Any]) -> None:
        self.modules = modules
        self.transform = transform
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        module = self.modules.get(fullname)
        if module is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=module.path, is_package=module.package)
        # Nothing but the slice is to be found inside the package.
        spec.has_location = True
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        part = self.modules[module.__name__]
        linecache.cache[part.path] = (len(part.text), None, part.text.splitlines(keepends=True), part.path)
        module.__dict__.update(self.names)
        module.__dict__[MARK] = RAN.reporter(part.path)
        exec(compile_slice(part, self.transform), module.__dict__)


@contextmanager
def main_program(part: Slice, transform: Transform | None = None) -> Iterator[tuple[ModuleType, CodeType]]:
    """A whole file as the program ``__main__``, and the code that is to be run in it, while the context lasts."""
    RAN.marks.clear()
    GIVEN.clear()
    own = next(m for m in part.modules if m.name == part.module)
    modules = {m.name: m for m in part.modules if m.name != part.module}
    hidden = {name: sys.modules.pop(name) for name in (*modules, "__main__") if name in sys.modules}
    finder = _SliceFinder(modules, transform, {})
    sys.meta_path.insert(0, finder)
    module = ModuleType("__main__")
    module.__file__ = own.path
    module.__dict__[MARK] = RAN.reporter(own.path)
    linecache.cache[own.path] = (len(own.text), None, own.text.splitlines(keepends=True), own.path)
    sys.modules["__main__"] = module
    try:
        yield module, compile_slice(own, transform)
    finally:
        sys.meta_path.remove(finder)
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.pop("__main__", None)
        sys.modules.update(hidden)


@contextmanager
def loaded(
    part: Slice, transform: Transform | None = None, names: dict[str, Any] | None = None
) -> Iterator[ModuleType]:
    """The module that holds the slice's object, while the context lasts.

    ``names`` are put into every module before it runs. Modules that the slice shadows are put back afterwards. What
    ran since then is in `marks.RAN`.
    """
    RAN.marks.clear()
    GIVEN.clear()
    modules = {m.name: m for m in part.modules}
    hidden = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    finder = _SliceFinder(modules, transform, names or {})
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module(part.module)
    finally:
        sys.meta_path.remove(finder)
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
