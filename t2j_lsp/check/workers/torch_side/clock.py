"""How long a torch program takes for one call, in evaluation mode and the user's precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.messages import CallTimes
from t2j_lsp.check.requests import TorchRequest
from t2j_lsp.check.workers.clock import median_of

from . import device as torch_device
from .build import build, program, realise
from .runs import set_state, state_of


def clock(request: TorchRequest) -> CallTimes:
    """Seconds of calls with the request's ``inputs``, and the ``state`` with which they were made."""
    rng = np.random.default_rng(request.seed)
    inputs = request.inputs
    with program(request) as (module, target):
        model = build(target, request.init, vars(module), False, rng)
        is_module = isinstance(model, nn.Module)
        if is_module:
            set_state(model, None, rng, False)
            model.eval()

        def arguments() -> tuple[Any, Any]:
            return realise(inputs.args, vars(module), False), realise(inputs.kwargs, vars(module), False)

        def call(given: tuple[Any, Any]) -> None:
            with torch.set_grad_enabled(not is_module):  # A function may train something.
                model(*given[0], **given[1])
            torch_device.done()

        return CallTimes(median_of(call, arguments), state_of(model))
