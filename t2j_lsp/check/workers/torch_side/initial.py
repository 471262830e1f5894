"""Constructs a torch module several times and samples the initial values of its parameters and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.messages import InitialValues
from t2j_lsp.check.requests import InitialRequest
from t2j_lsp.check.verdict.initial import MAX_ELEMENTS, constructions, picked

from . import device as torch_device
from .build import build, program, to_array


def initial(request: InitialRequest) -> InitialValues:
    """``values``: by name, an array (constructions, elements); empty for a function or a large module."""
    init = request.init
    values: dict[str, list[Any]] = {}
    with program(request) as (module, target):
        count = 1
        number = 0
        seeded = False
        while number < count:
            torch_device.seed(1000 + number)
            model = build(target, init, vars(module), request.wide, np.random.default_rng(0))
            seeded |= torch.initial_seed() != 1000 + number
            if not isinstance(model, nn.Module):
                break
            named = dict(model.named_parameters(remove_duplicate=False))
            elements = sum(p.numel() for p in named.values())
            if elements > MAX_ELEMENTS:
                break
            count = constructions(elements)
            for name, tensor in [*named.items(), *model.named_buffers(remove_duplicate=False)]:
                array = to_array(tensor)
                if isinstance(array, np.ndarray):
                    values.setdefault(name, []).append(picked(array))
            number += 1
    return InitialValues({name: np.stack(arrays) for name, arrays in values.items()}, count, seeded)
