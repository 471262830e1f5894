"""Constructs a converted module several times and samples the initial values of its parameters and buffers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from t2j_lsp.check.messages import InitialValues
from t2j_lsp.check.requests import JaxInitialRequest
from t2j_lsp.check.verdict.initial import picked
from t2j_lsp.check.workers import host_random
from t2j_lsp.weights import torch_names

from .build import function_of_parameters, program, realise, takes_rngs
from .pairing import own_entries

EAGER = 48
"""Constructions at most, where the constructor can't be compiled."""
_RNGS = "_t2j_rngs"


def initial(request: JaxInitialRequest) -> InitialValues:
    """``values`` as on the torch side, from ``count`` constructions."""
    init = request.init
    with program(request) as (module, target):

        def create(seed: Any) -> Any:
            # Modules among the arguments are built anew each time, as torch's are.
            rngs = nnx.Rngs(jax.random.key(seed))
            namespace = {**vars(module), _RNGS: rngs}
            if not isinstance(target, type):
                return own_entries(function_of_parameters(target, namespace, request, rngs(), _RNGS))
            args = realise(init.args, namespace, request.wide, _RNGS)
            kwargs = realise(init.kwargs, namespace, request.wide, _RNGS)
            if takes_rngs(target):
                kwargs["rngs"] = rngs
            return torch_names(target(*args, **kwargs))

        def sample(seed: Any) -> dict[str, Any]:
            return {name: picked(jnp.asarray(e.value())) for name, e in create(seed).items()}

        before = host_random.state()
        try:
            many = jax.jit(jax.vmap(sample))(jnp.arange(request.count))
            if host_random.state() == before:
                return InitialValues({name: np.asarray(array) for name, array in many.items()})
        except Exception:  # noqa: BLE001 - a constructor that looks at values runs once for each seed
            pass
        samples = [sample(seed) for seed in range(min(request.count, EAGER))]
    return InitialValues({name: np.stack([np.asarray(s[name]) for s in samples]) for name in samples[0]})
