"""Batches split over devices give the numbers of one device, and the parts are where they should be."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys

import jax
import pytest

from t2j_lsp.rules.helpers.parallel import check_single_process

PROGRAM = """\
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from t2j_lsp.rules.helpers.parallel import DataParallel

model = DataParallel(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))
optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, grads)
    return loss


rng = np.random.default_rng(0)
losses = [train_step(model, optimizer, rng.normal(size=(n, 3)), rng.normal(size=(n, 2))).item() for n in (8, 8, 6, 8)]
split = nnx.jit(lambda model, x: model(x))(model, jnp.ones((8, 3)))
kernel = model.module.kernel[...]
print(json.dumps([losses, kernel.tolist(), len(split.sharding.device_set), split.addressable_shards[0].data.shape]))
"""


def run_here() -> list[list[float]]:
    """The program's output in this process, which has one device, in float32 as in a process of its own."""
    assert jax.device_count() == 1
    printed = io.StringIO()
    with jax.enable_x64(False), contextlib.redirect_stdout(printed):
        exec(PROGRAM, {})
    result: list[list[float]] = json.loads(printed.getvalue())
    return result


def run(devices: int) -> list[list[float]]:
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    result: list[list[float]] = json.loads(done.stdout)
    return result


def test_four_devices_give_the_numbers_of_one() -> None:
    losses, kernel, devices, shape = run_here()
    four_losses, four_kernel, four_devices, four_shape = run(4)
    assert four_losses == pytest.approx(losses, rel=1e-5)
    for row, four_row in zip(kernel, four_kernel, strict=True):
        assert four_row == pytest.approx(row, rel=1e-5)
    assert (devices, four_devices) == (1, 4)
    assert (shape, four_shape) == ([8, 2], [2, 2])


def test_one_of_several_processes_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    check_single_process()
    check_single_process(1)
    with pytest.raises(RuntimeError, match="one of 4 processes"):
        check_single_process(4)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="without torchrun"):
        check_single_process()
