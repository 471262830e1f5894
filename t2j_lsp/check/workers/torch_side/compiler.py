"""Puts off PyTorch's compiler, whose import takes as long as that of all else of PyTorch, until a program compiles.

The first optimizer that is made imports it, to keep itself from being compiled. In a worker nothing is compiled (see
`check.process.environment`).
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

NAME = "torch._dynamo"


def _disable(function: Callable[..., Any] | None = None, recursive: bool = True, **options: Any) -> Any:
    """``torch._dynamo.disable`` where nothing is compiled."""
    return (lambda function: function) if function is None else function


class _Later(ModuleType):
    """The compiler as optimizers and checkpoints call it; it is loaded when it is asked for anything else."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # The import system asks for these.
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _load(self)
        return getattr(self, name)


class _CompilerFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the compiler, and loads it where a part of it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == NAME and NAME not in sys.modules:
            if spec := importlib.machinery.PathFinder.find_spec(fullname, path, target):
                spec.loader = self
                return spec
        if fullname.startswith(f"{NAME}.") and isinstance(module := sys.modules.get(NAME), _Later):
            _load(module)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(disable=_disable, graph_break=lambda *message, **options: None)


def put_off() -> None:
    """Has PyTorch, which is to be imported behind this, find the compiler so."""
    sys.meta_path.insert(0, _CompilerFinder())


def _load(module: ModuleType) -> None:
    module.__class__ = ModuleType
    importlib.reload(module)
