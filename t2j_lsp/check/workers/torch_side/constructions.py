"""Lets constructors of torch's modules, and of a program's own, report."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from torch import nn

from t2j_lsp.check.workers.programs.made import Constructions


@contextmanager
def reporting(constructions: Constructions) -> Iterator[None]:
    """Constructors report to ``constructions`` in this context."""
    with ExitStack() as stack:

        def wrap(cls: type) -> None:
            if "__init__" in vars(cls):
                constructor = _reporting(vars(cls)["__init__"], constructions)
                stack.enter_context(mock.patch.object(cls, "__init__", constructor))

        def on_subclass(cls: Any, /, **kwargs: Any) -> None:
            super(nn.Module, cls).__init_subclass__(**kwargs)
            wrap(cls)

        classes: list[type] = [nn.Module]
        for one in classes:
            classes += one.__subclasses__()
        for one in dict.fromkeys(classes):
            wrap(one)
        stack.enter_context(mock.patch.object(nn.Module, "__init_subclass__", classmethod(on_subclass), create=True))
        yield


def _reporting(original: Callable[..., None], constructions: Constructions) -> Callable[..., None]:
    @functools.wraps(original)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        with constructions.making(type(self)):
            original(self, *args, **kwargs)
        if isinstance(self, nn.Module):
            constructions.made(self)

    return construct
