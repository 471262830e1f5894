"""Keeps torch's compiler out until a program asks for it: importing it takes as long as importing the rest of torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

_NAME = "torch._dynamo"


class NotImported(ModuleType):
    """Stands for ``torch._dynamo`` and answers what every step of an optimizer asks of it, where nothing is compiled.

    All else (``torch.compile``, ``torch.export``) imports the module itself, which then takes this one's place.
    """

    def disable(self, function: Callable[..., Any] | None = None, *args: Any, **options: Any) -> Any:
        """The function, which is not to be compiled, or a decorator."""
        return (lambda decorated: decorated) if function is None else function

    def graph_break(self, *args: Any, **options: Any) -> None:
        """Nothing: there is no graph."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


def install() -> None:
    """Before the first optimizer is made."""
    if _NAME not in sys.modules:
        sys.modules[_NAME] = torch._dynamo = NotImported(_NAME)
