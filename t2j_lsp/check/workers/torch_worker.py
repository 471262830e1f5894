"""The operations of the torch worker."""

from __future__ import annotations

from typing import Any

import torch

from . import torch_device, torch_exact, torch_random, torch_ties
from .serve import Handler
from .torch_initial import initial
from .torch_observe import observe
from .torch_prepare import prepare
from .torch_trace import owners, trace
from .torch_training import train


def hello() -> dict[str, Any]:
    """What runs here, and on which device."""
    device = torch.cuda.get_device_name() if torch_device.on_card() else "cpu"
    return {"framework": f"torch {torch.__version__}", "device": device, "missing": torch_device.missing()}


torch_device.install()
torch_random.install()
torch_ties.install()
torch_exact.install()
torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)

HANDLERS: dict[str, Handler] = {
    "prepare": prepare,
    "observe": observe,
    "trace": trace,
    "owners": owners,
    "initial": initial,
    "train": train,
    "memory": torch_device.memory,
    "precision": torch_device.precision,
}
