"""Switches XLA's optimizations off: on arrays this small compiling is all the time there is."""

from collections.abc import Iterator

import jax
import pytest

pytest.register_assert_rewrite("tests.rules.conversion")


@pytest.fixture(autouse=True)
def compiled_fast() -> Iterator[None]:
    """Leaves the process as it was."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
