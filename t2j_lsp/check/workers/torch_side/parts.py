"""Watches how a run builds and calls the user's other classes, so that each can be checked on its own."""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import Any

import torch
from torch import nn

from t2j_lsp.check.inputs import Arguments, ArraySpec, Code, InputPlan
from t2j_lsp.check.program.slice import Slice

LIMIT = 3
"""Uses kept for each class."""


class RecordedParts:
    """A context in which constructor arguments of the user's module classes are recorded, and then their inputs."""

    def __init__(self, part: Slice) -> None:
        self.modules = {m.name for m in part.modules}
        self.made: dict[int, tuple[Any, Arguments]] = {}
        self.uses: dict[str, list[InputPlan]] = {}
        self.handles: list[Any] = []

    def __enter__(self) -> RecordedParts:
        self.classes = [
            (value, value.__dict__.get("__init__"))
            for name in self.modules & set(sys.modules)
            for value in list(vars(sys.modules[name]).values())
            if isinstance(value, type) and value.__module__ == name and not issubclass(value, BaseException | enum.Enum)
        ]
        for owner, original in self.classes:
            if original is not None:
                type.__setattr__(owner, "__init__", self._recording(owner, original))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for owner, original in self.classes:
            if original is not None:
                type.__setattr__(owner, "__init__", original)
        for handle in self.handles:
            handle.remove()

    def _recording(self, owner: type, original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def init(module: Any, *args: Any, **kwargs: Any) -> None:
            if type(module) is owner and id(module) not in self.made:
                try:
                    described = Arguments(
                        [self._describe(a) for a in args], {k: self._describe(v) for k, v in kwargs.items()}
                    )
                    self.made[id(module)] = module, described
                except TypeError:
                    pass
            original(module, *args, **kwargs)

        return init

    def _describe(self, value: Any) -> Any:
        """A constructor argument as plain data or code. Raises TypeError where it is neither."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list | tuple):
            items = [self._describe(v) for v in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, dict) and all(isinstance(k, str | int | float) for k in value):
            return {k: self._describe(v) for k, v in value.items()}
        made = self.made.get(id(value))
        if made is not None and made[0] is value:
            shown = [_text(a) for a in made[1].args] + [f"{k}={_text(v)}" for k, v in made[1].kwargs.items()]
            return Code(f"{type(value).__name__}({', '.join(shown)})")
        if isinstance(value, functools.partial) and not value.args:
            kept = ", ".join(f"{k}={_text(self._describe(v))}" for k, v in value.keywords.items())
            return Code(f"functools.partial({self._describe(value.func)}, {kept})")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: self._describe(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
            inside = ", ".join(f"{k}={_text(v)}" for k, v in fields.items())
            return Code(f"{type(value).__name__}({inside})")
        if isinstance(value, type | FunctionType) and value.__module__ in self.modules:
            name: str = value.__name__
            if getattr(sys.modules.get(value.__module__), name, None) is value:
                return Code(name)
        if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__.startswith("torch.nn"):
            return Code(f"nn.{value.__name__}")
        raise TypeError

    def watch(self, model: Any) -> None:
        """Records what the parts of a model are called with."""
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.uses = {}
        if isinstance(model, nn.Module):
            for module in model.modules():
                if module is not model and type(module).__module__ in self.modules:
                    self.handles.append(module.register_forward_pre_hook(self._called, with_kwargs=True))

    def _called(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        uses = self.uses.setdefault(type(module).__name__, [])
        made = self.made.get(id(module))
        if len(uses) >= LIMIT or made is None or made[0] is not module:
            return
        try:
            inputs = Arguments([_specify(a) for a in args], {k: _specify(v) for k, v in kwargs.items()})
        except TypeError:
            return
        plan = InputPlan(made[1], inputs, "its use in another class")
        if str(plan) not in map(str, uses):
            uses.append(plan)

    def plans(self) -> dict[str, list[InputPlan]]:
        """The uses by class name, as plain plans: none where a class was used but can't be built from plain data."""
        return self.uses


def _text(value: Any) -> str:
    """A described argument as source text."""
    if isinstance(value, Code):
        return value.text
    if isinstance(value, list | tuple):
        inside = ", ".join(_text(v) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _specify(value: Any) -> Any:
    """A specification of an input like this one. Raises TypeError where it is no plain data."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype in ("float64", "float32"):
            return ArraySpec("float32", tuple(value.shape))
        if value.numel() and not value.is_floating_point() and not value.is_complex() and dtype != "bool":
            return ArraySpec(dtype, tuple(value.shape), float(value.min()), float(value.max()) + 1)
        return ArraySpec(dtype, tuple(value.shape))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        items = [_specify(v) for v in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {k: _specify(v) for k, v in value.items()}
    raise TypeError
