"""Process groups of one process, which has no network here: what it sends it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import distributed

BACKEND = "alone"
ProcessGroup: Any = distributed.ProcessGroup


class Done(torch._C._distributed_c10d.Work):
    """A communication that is over."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.future: Any = torch.futures.Future()
        self.future.set_result(value)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def get_future(self) -> Any:
        return self.future


class Alone(ProcessGroup):  # type: ignore[misc]
    """The group of one process: sums and broadcasts are what it has, and there is nobody to wait for."""

    def allreduce(self, tensors: Any, opts: Any = None) -> Done:
        return Done(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Done:
        return Done(tensors)

    def broadcast(self, tensors: Any, opts: Any = None) -> Done:
        return Done(tensors)

    def reduce(self, tensors: Any, opts: Any = None) -> Done:
        return Done(tensors)

    def barrier(self, opts: Any = None) -> Done:
        return Done(None)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Done:
        for gathered, own in zip(outputs, inputs, strict=True):
            gathered[0].copy_(own)
        return Done(outputs)

    def getBackendName(self) -> str:
        return BACKEND


@contextmanager
def alone() -> Iterator[None]:
    """Groups of one process are made without a network; others as PyTorch makes them."""
    if not distributed.is_available():
        yield
        return
    original = distributed.init_process_group

    def init(*arguments: Any, **options: Any) -> None:
        size = arguments[3] if len(arguments) > 3 else options.get("world_size", -1)
        if (size if size > 0 else int(os.environ.get("WORLD_SIZE", "1"))) != 1:
            original(*arguments, **options)
            return
        if BACKEND not in distributed.Backend.backend_list:
            distributed.Backend.register_backend(
                BACKEND, lambda store, rank, size, timeout: Alone(rank, size), devices=["cpu"]
            )
        original(BACKEND, store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)

    with mock.patch.object(distributed, "init_process_group", init):
        try:
            yield
        finally:
            if distributed.is_initialized():
                distributed.destroy_process_group()
