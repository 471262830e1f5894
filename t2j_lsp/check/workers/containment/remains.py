"""Whether a program left something changed in the worker: functions, classes or settings of the libraries.

A worker stays warm for the next file of its project, which must not be judged by another PyTorch than the user's. What
is compared is which objects stand under the libraries' names. That finds what programs do (``torch.relu = ...``,
``nn.Linear.reset_parameters = ...``, ``torch.set_default_dtype``); code that sets out to hide a change can.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from itertools import chain, repeat
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
_VALUES_OF = operator.methodcaller("values")
_Names = dict[str, tuple[Any, Any]]
_assigned = 0
"""How often a function of any module was given other code."""


@functools.cache
def _watch_code() -> None:
    """Has assignments to ``__code__`` counted. To read it from each function would raise an audit event for each."""
    sys.addaudithook(_count)


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    global _assigned
    if event == "object.__setattr__" and arguments[1] == "__code__":
        _assigned += 1


class Remains:
    """What stood under the libraries' names when this was made, and under those of modules that came later."""

    def __init__(self, settings: Callable[[], Any]) -> None:
        self._settings = settings
        self._before = settings()
        self._owners: dict[int, tuple[Any, _Names]] = {}
        self._modules: set[str] = set()
        _watch_code()
        self._note()
        self._snapshot = self._taken()

    def changed(self) -> str | None:
        """A name whose object is another than before; None where there is none."""
        if self._settings() != self._before:
            return "a setting"
        known = len(self._owners)
        if not (holds := self._snapshot.holds()):
            for owner, names in self._owners.values():
                if (name := _changed(owner, names)) is not None:
                    return f"{getattr(owner, '__name__', owner)}.{name}"
        self._note()
        if not holds or len(self._owners) > known:
            self._snapshot = self._taken()
        return None

    def _taken(self) -> _Snapshot:
        return _Snapshot([vars(owner) for owner, _ in self._owners.values()])

    def _note(self) -> None:
        for name in sys.modules.keys() - self._modules:
            self._modules.add(name)
            module = sys.modules.get(name)
            if _is_public(name) and isinstance(module, types.ModuleType):
                self._remember(module)

    def _remember(self, owner: Any) -> None:
        if id(owner) in self._owners:
            return
        names = dict(_code_of(owner))
        self._owners[id(owner)] = owner, names
        for value, _ in names.values():
            if isinstance(value, type) and _is_public(value.__module__):
                self._remember(value)


class _Snapshot:
    """All that stands in namespaces. To see that it still does takes no step of Python for each name.

    Nearly always it does, and every answer of a worker waits for this.
    """

    def __init__(self, namespaces: list[dict[str, Any]]) -> None:
        self._namespaces = namespaces
        self._sizes = [*map(len, namespaces)]
        self._last = _last(namespaces)
        self._values = (*chain.from_iterable(map(_VALUES_OF, namespaces)),)
        self._assigned = _assigned

    def holds(self) -> bool:
        """Whether the same names have the same objects, and no function other code.

        A name that goes and one that comes with its object stand in another order: the last one tells.
        """
        return (
            self._assigned == _assigned
            and [*map(len, self._namespaces)] == self._sizes
            and all(map(operator.is_, chain.from_iterable(map(_VALUES_OF, self._namespaces)), self._values))
            and _last(self._namespaces) == self._last
        )


def _last(namespaces: list[dict[str, Any]]) -> list[str | None]:
    """The last name of each namespace."""
    return [*map(next, map(reversed, namespaces), repeat(None))]


def _changed(owner: Any, names: _Names) -> str | None:
    """A name of a module or class whose object is another than before."""
    present = vars(owner)
    for name, (value, code) in names.items():
        now = present.get(name)
        if now is value and getattr(value, "__code__", None) is code or _wraps(now, value):
            continue
        return name
    if isinstance(owner, type):
        for name, (value, _) in _code_of(owner):
            # What a class inherited before: ``torch.Tensor.add = ...``.
            inherited = [vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)]
            if name not in names and inherited and not _wraps(value, inherited[0]):
                return name
    return None


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
