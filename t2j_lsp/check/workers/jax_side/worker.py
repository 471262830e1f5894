"""The operations of the JAX worker."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from t2j_lsp.check.messages import Greeting
from t2j_lsp.check.requests import (
    EmptyRequest,
    JaxInitialRequest,
    JaxProgramRequest,
    JaxRequest,
    JaxTraceRequest,
    JaxTrainRequest,
    MemoryRequest,
    TestsRequest,
)
from t2j_lsp.check.workers.serve import Handler, taking

from . import convolution as jax_convolution
from . import device as jax_device
from . import lowering as jax_lowering
from . import random as jax_random
from . import signs as jax_signs
from . import ties as jax_ties
from . import widen as jax_widen

jax_device.install()
jax_lowering.install()
jax_widen.install()
jax_convolution.install()
jax_signs.install()
jax_ties.install()
jax_random.install()  # Before flax, which keeps references to what is replaced here.

import flax  # noqa: E402

from .clock import clock  # noqa: E402
from .initial import initial  # noqa: E402
from .observe import observe  # noqa: E402
from .program import program  # noqa: E402
from .tests import tests  # noqa: E402
from .trace import trace  # noqa: E402
from .training import train  # noqa: E402


def greet(layers: list[str]) -> Greeting:
    """What runs here, and on which device."""
    device = jax.devices()[0]
    versions = f"jax {jax.__version__}, flax {flax.__version__}"
    name = device.device_kind if device.platform == "gpu" else device.platform
    return Greeting(versions, name, jax_device.missing(), layers)


_SET = (
    "default_matmul_precision", "debug_nans", "disable_jit", "numpy_dtype_promotion", "numpy_rank_promotion",
    "default_device", "default_prng_impl", "threefry_partitionable", "enable_custom_prng",
)  # fmt: skip


def settings() -> tuple[Any, ...]:
    """What a program may set for all that runs after it."""
    return (*(getattr(jax.config, f"jax_{name}") for name in _SET), np.geterr())


HANDLERS: dict[str, Handler] = {
    "observe": taking(JaxRequest, observe),
    "trace": taking(JaxTraceRequest, trace),
    "initial": taking(JaxInitialRequest, initial),
    "train": taking(JaxTrainRequest, train),
    "clock": taking(JaxRequest, clock),
    "program": taking(JaxProgramRequest, program),
    "tests": taking(TestsRequest, tests),
    "memory": taking(MemoryRequest, jax_device.memory),
    "precision": taking(EmptyRequest, jax_device.precision),
}
