"""Where JAX runs: on the CPU, or on a card that it shares with torch; and float32 that is float32 there."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import entry_points, version

import jax
import jax.numpy as jnp
import numpy as np

from t2j_lsp.check.process.processes import DEVICE
from t2j_lsp.check.requests import EmptyRequest, MemoryRequest
from t2j_lsp.check.workers.precision import kernel, permutation, telling

PIECE = 2**28
"""Bytes of one array, where memory is to be held."""
_held: list[jax.Array] = []


Options = dict[str, str | bool]
_PLAIN_LOOPS, _IN_ONE_PART = "--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"
_KNOWN_TO = ("0.10.",)
"""Flags with which XLA compiles for the CPU in a third of the time (each part of a program costs a start of LLVM), and
the versions of jaxlib that are known to have them: others end the process over a flag that they don't know."""


def install() -> None:
    """Takes the card, where one is asked for, before the worker may write nothing and start nothing any more.

    On the CPU, adds to XLA's flags, which it reads when it first compiles.
    """
    if os.environ.get(DEVICE) == "gpu":
        jax.devices()
    elif version("jaxlib").startswith(_KNOWN_TO):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_PLAIN_LOOPS} {_IN_ONE_PART}".strip()


def usual_loops() -> Options:
    """Options for a compilation that is to be trusted: XLA's usual loops, where `install` has switched them off.

    Without them, and with the simplifier but no fusion, the gradient of a sum over prefixes comes out wrong (jaxlib
    0.10).
    """
    return {"xla_cpu_use_fusion_emitters": True} if _PLAIN_LOOPS in os.environ.get("XLA_FLAGS", "") else {}


def missing() -> str | None:
    """Why JAX has no card, where it was to use one."""
    if os.environ.get(DEVICE) != "gpu" or jax.devices()[0].platform == "gpu":
        return None
    if not entry_points(group="jax_plugins") and importlib.util.find_spec("jax_plugins") is None:
        return f"jax {jax.__version__} is installed without CUDA"
    try:
        jax.devices("gpu")
    except RuntimeError as error:
        return f"jax {jax.__version__} finds no CUDA device ({str(error).splitlines()[0][:200]})"
    return f"jax {jax.__version__} prefers {jax.devices()[0].platform}"


def memory(request: MemoryRequest) -> dict[str, int]:
    """Bytes that XLA holds and may hold; nothing on the CPU.

    ``hold`` is a share of what XLA may have, to be kept from now on.
    """
    stats = jax.devices()[0].memory_stats()
    if not stats:
        return {}
    _held.clear()
    limit = stats["bytes_limit"]
    if request.hold:
        count = int(limit * request.hold) - stats["bytes_in_use"]
        _held.extend(jnp.zeros(PIECE, jnp.uint8).block_until_ready() for _ in range(count // PIECE))
    stats = jax.devices()[0].memory_stats() or {}
    used = max(stats.get("pool_bytes", 0), stats["bytes_in_use"])
    return {"used": used, "peak": stats.get("peak_bytes_in_use", used), "limit": limit}


def precision(request: EmptyRequest) -> dict[str, float]:
    """How far float32 products of matrices and convolutions are from the right result, relative to it."""
    a, b = telling(), permutation()
    product = jnp.asarray(a) @ jnp.asarray(b)
    image, weight = a[None, :64].reshape(1, 64, 16, -1), kernel()
    filtered = jax.lax.conv(jnp.asarray(image), jnp.asarray(weight), (1, 1), "SAME")
    errors = {"matrix product": (product, a @ b), "convolution": (filtered, image)}
    return {name: float(np.abs(np.asarray(error) / right - 1).max()) for name, (error, right) in errors.items()}
