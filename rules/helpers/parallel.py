"""One batch over several devices, with the same parameters on each.

Source: https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html
"""

from os import getenv
from typing import Any

import jax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class DataParallel(nnx.Module):
    """A module whose inputs are split over all devices along their first axis, as in PyTorch's `nn.DataParallel`.

    XLA computes each part where it is, and adds up the gradients of parameters. A batch that the number of devices
    doesn't divide is computed whole on each.
    """

    def __init__(self, module: nnx.Module, *, rngs: nnx.Rngs | None = None):
        self.module = module

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        inputs, options = jax.tree.map(split_over_devices, (inputs, options))
        return self.module(*inputs, **options)


def split_over_devices(x: Any) -> Any:
    """An array with its first axis over all devices; anything else as it is."""
    count = jax.device_count()
    if count == 1 or not isinstance(x, jax.Array) or x.ndim == 0 or x.shape[0] % count:
        return x
    mesh = Mesh(jax.devices(), ("data",))
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec("data")))


def check_single_process(processes: int = -1) -> None:
    """Raises if a program is started as several processes: JAX drives all devices of a host from one."""
    count = processes if processes > 0 else int(getenv("WORLD_SIZE", "1"))
    if count > 1:
        raise RuntimeError(f"This is one of {count} processes. Start one, without torchrun: it drives all devices.")
