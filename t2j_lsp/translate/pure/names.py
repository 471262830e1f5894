"""Names of the target ``jax``: of a class's functions, of helpers, and of what stands inside a function."""

from __future__ import annotations

import ast
import builtins
import keyword
import re

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.source.helpers import IMPORT_ROOTS, helper_names


def snake_case(name: str) -> str:
    """``ResNetBlock`` as ``res_net_block``, ``MobileViT`` as ``mobile_vit``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z]\w)|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class FunctionNames:
    """The names of one file that its functions may have."""

    def __init__(self, inference: Inference, classes: list[ClassInfo]) -> None:
        self.inference, self.source = inference, inference.source
        self.helpers: set[str] = set()
        """Helpers that the text calls."""
        self.renames: dict[str, str] = {}
        self.missing: set[str] = set()
        """Packages of functions that were asked for and whose modules the file has no name for."""
        symbols = self.source.symbols
        self.local: set[str] = set()
        for info in classes:
            for method in info.methods.values():
                self.local |= symbols.bound(method.node) - _iterated(method.node)
        self._functions: dict[ClassInfo, str] = {}
        for info in classes:
            self._functions[info] = self._function(info)

    def _function(self, info: ClassInfo) -> str:
        taken = (
            self.local | self.source.symbols.module | set(self._functions.values()) | _RESERVED | set(helper_names())
        )
        base = snake_case(info.name).strip("_") or "module"
        for name in (base, f"apply_{base}", f"{base}_forward"):
            if name not in taken and f"init_{base}" not in taken:
                return name
        return f"{base}_of_{info.node.lineno}"

    def apply(self, info: ClassInfo) -> str:
        """The function that applies a module of a class."""
        return self._functions[info]

    def method(self, info: ClassInfo, method: str) -> str:
        """The function that a method of a class is: ``net`` for ``forward``, ``net_encode`` for ``encode``."""
        return self.apply(info) if method == "forward" else f"{self.apply(info)}_{method.strip('_')}"

    def is_free(self, name: str) -> bool:
        """Whether nothing of the file's has a name, and no function that is written."""
        return name not in self.local | self.source.symbols.module | set(self._functions.values()) | _RESERVED

    def init(self, info: ClassInfo) -> str:
        """The function that makes its parameters."""
        base = snake_case(info.name).strip("_") or "module"
        name = self._functions[info]
        return f"init_{base if name in (f'apply_{base}', f'{base}_forward') else name}"

    def helper(self, name: str) -> str:
        """A helper as the text calls it."""
        self.helpers.add(name)
        if name not in self.renames and name in self.local | self.source.symbols.module | set(self._functions.values()):
            new = f"{name}_"
            while new in self.source.symbols.names:
                new += "_"
            self.renames[name] = new
        return self.renames.get(name, name)

    def library(self, name: str) -> str:
        """``jax`` as the text calls it."""
        self.helpers.add(name)
        return name

    def torch(self, qualified: str, function: ast.AST | None) -> str:
        """A function of torch, or of another library, by the names that the file has for it or for its modules."""
        local = self.source.symbols.bound(function) if function is not None else frozenset()  # type: ignore[arg-type]
        parts = qualified.split(".")
        for end in range(len(parts), 0, -1):
            module = ".".join(parts[:end])
            for name, fact in self.inference.env.items():
                if _is(fact, module) and name not in local:
                    return ".".join([name, *parts[end:]])
        self.missing.add(parts[0])
        return qualified

    @property
    def taken(self) -> set[str]:
        """Names that functions and helpers have."""
        return {*self._functions.values(), *self.helpers}


def _is(fact: Fact | None, module: str) -> bool:
    return isinstance(fact, Qual) and fact.name == module


def _iterated(node: ast.AST) -> set[str]:
    """Names that loops of a function bind and nothing else does: they get names of their own where they are modules."""
    loops = [n for n in ast.walk(node) if isinstance(n, ast.For)]
    targets = {n for loop in loops for n in ast.walk(loop.target)}
    names = {n.id for n in targets if isinstance(n, ast.Name)}
    other = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and n not in targets
    }
    parameters = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    return names - other - parameters


_RESERVED = frozenset({*dir(builtins), *keyword.kwlist, *IMPORT_ROOTS, "params", "state", "key", "train"})
