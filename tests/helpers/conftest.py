"""Runs every test of this folder in float64 on the JAX side, and leaves the process as it was."""

from collections.abc import Iterator

import jax
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def float64_compiled_fast() -> Iterator[None]:
    """Switches float64 on, and XLA's optimizations off: on arrays this small compiling is all the time there is."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", before)
