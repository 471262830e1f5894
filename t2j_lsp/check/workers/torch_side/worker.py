"""The operations of the torch worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from t2j_lsp.check.messages import Greeting, Prepared
from t2j_lsp.check.requests import (
    EmptyRequest,
    InitialRequest,
    MemoryRequest,
    PrepareRequest,
    TestsRequest,
    TorchProgramRequest,
    TorchRequest,
    TorchTraceRequest,
    TorchTrainRequest,
    ValuesRequest,
)
from t2j_lsp.check.workers.serve import Handler, taking

from . import casts as torch_casts
from . import device as torch_device
from . import exact as torch_exact
from . import overwrites as torch_overwrites
from . import random as torch_random
from . import signs as torch_signs
from . import tests as torch_tests
from . import ties as torch_ties
from .clock import clock
from .initial import initial
from .observe import observe
from .prepare import prepare
from .program import program
from .trace import owners, trace
from .training import train


def greet(layers: list[str]) -> Greeting:
    """What runs here, and on which device."""
    device = torch.cuda.get_device_name() if torch_device.on_card() else "cpu"
    return Greeting(f"torch {torch.__version__}", device, torch_device.missing(), layers)


def settings() -> tuple[Any, ...]:
    """What a program may set for all that runs after it."""
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.is_anomaly_enabled(),
        np.geterr(),
        torch_device.is_usable(),
    )


torch_device.install()
torch_random.install()
torch_ties.install()
torch_overwrites.install()
torch_casts.install()
torch_signs.install()
torch_exact.install()
torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)


def _prepared(request: PrepareRequest) -> Prepared:
    return torch_device.on_cpu_first(lambda: prepare(request), lambda it: it.problems is not None)


HANDLERS: dict[str, Handler] = {
    "prepare": taking(PrepareRequest, _prepared),
    "observe": taking(TorchRequest, observe),
    "trace": taking(TorchTraceRequest, trace),
    "owners": taking(TorchRequest, owners),
    "initial": taking(InitialRequest, initial),
    "train": taking(TorchTrainRequest, train),
    "clock": taking(TorchRequest, clock),
    "program": taking(TorchProgramRequest, program),
    "tests": taking(TestsRequest, torch_tests.tests),
    "values": taking(ValuesRequest, torch_tests.values),
    "memory": taking(MemoryRequest, torch_device.memory),
    "precision": taking(EmptyRequest, torch_device.precision),
}
