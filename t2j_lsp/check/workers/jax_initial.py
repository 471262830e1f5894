"""Constructs a converted module several times and samples the initial values of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from flax import nnx

from t2j_lsp.check.initial import picked
from t2j_lsp.check.inputs import Arguments
from t2j_lsp.weights import torch_names

from .jax_build import program, realise, takes_rngs


def initial(request: dict[str, Any]) -> dict[str, Any]:
    """``values`` as on the torch side, from ``count`` constructions."""
    init = Arguments.from_plain(request["init"])
    values: dict[str, list[Any]] = {}
    with program(request) as (module, target):

        def create(seed: Any) -> Any:
            args = realise(init.args, vars(module), False)
            kwargs = realise(init.kwargs, vars(module), False)
            if takes_rngs(target):
                kwargs["rngs"] = nnx.Rngs(seed)
            return target(*args, **kwargs)

        construct = _compiled(create) or create
        for seed in range(request["count"]):
            for name, entry in torch_names(construct(seed)).items():
                if entry.kind == "parameter":
                    values.setdefault(name, []).append(picked(np.asarray(entry.value())))
    return {"values": {name: np.stack(arrays) for name, arrays in values.items()}}


def _compiled(create: Any) -> Any | None:
    """The constructor under ``jit``, which is compiled once; None where it looks at values while it runs."""
    compiled = nnx.jit(create)
    try:
        compiled(0)
    except Exception:  # noqa: BLE001 - whatever the reason, it is then run eagerly
        return None
    return compiled
