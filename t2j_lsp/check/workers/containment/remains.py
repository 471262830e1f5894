"""Whether a program left something changed in the worker: functions, classes or settings of the libraries.

A worker stays warm for the next file of its project, which must not be judged by another PyTorch than the user's. What
is compared is which objects stand under the libraries' names. That finds what programs do (``torch.relu = ...``,
``nn.Linear.reset_parameters = ...``, ``torch.set_default_dtype``); code that sets out to hide a change can.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_LIBRARIES = frozenset({"torch", "jax", "jaxlib", "flax", "optax", "numpy", "t2j_lsp", "builtins", "math", "random"})
_CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    staticmethod,
    classmethod,
    property,
    type,
)
_Names = dict[str, tuple[Any, Any]]


class Remains:
    """What stood under the libraries' names when this was made, and under those of modules that came later."""

    def __init__(self, settings: Callable[[], Any]) -> None:
        self._settings = settings
        self._before = settings()
        self._owners: dict[int, tuple[Any, _Names]] = {}
        self._modules: set[str] = set()
        self._note()

    def changed(self) -> str | None:
        """A name whose object is another than before; None where there is none."""
        if self._settings() != self._before:
            return "a setting"
        for owner, names in self._owners.values():
            present = vars(owner)
            for name, (value, code) in names.items():
                now = present.get(name)
                if now is value and getattr(value, "__code__", None) is code or _wraps(now, value):
                    continue
                return f"{getattr(owner, '__name__', owner)}.{name}"
            if isinstance(owner, type):
                for name, (value, _) in _code_of(owner):
                    # What a class inherited before: ``torch.Tensor.add = ...``.
                    inherited = [vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)]
                    if name not in names and inherited and not _wraps(value, inherited[0]):
                        return f"{owner.__name__}.{name}"
        self._note()
        return None

    def _note(self) -> None:
        for name, module in list(sys.modules.items()):
            if _is_public(name) and name not in self._modules:
                self._modules.add(name)
                if isinstance(module, types.ModuleType):
                    self._remember(module)

    def _remember(self, owner: Any) -> None:
        if id(owner) in self._owners:
            return
        names = dict(_code_of(owner))
        self._owners[id(owner)] = owner, names
        for value, _ in names.values():
            if isinstance(value, type) and _is_public(value.__module__):
                self._remember(value)


def _is_public(module: str) -> bool:
    """Whether a module is one of a library's that programs know; the others change as the library likes."""
    first, *rest = module.split(".")
    return first in _LIBRARIES and not any(part.startswith("_") for part in rest)


def _wraps(now: Any, before: Any) -> bool:
    """Whether a library has wrapped its own function, as torch.optim does with each optimizer's ``step``."""
    name = str(getattr(now, "__globals__", {}).get("__name__", ""))
    return getattr(now, "__wrapped__", None) is before and name.partition(".")[0] in _LIBRARIES


def _code_of(owner: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name, value in list(vars(owner).items()):
        # Not isinstance, which asks lazy objects what they are.
        if issubclass(type(value), _CODE) and not name.startswith("__abstract"):
            yield name, (value, getattr(value, "__code__", None))
