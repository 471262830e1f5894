"""Gradient transformations against torch.optim: every parameter after each of several updates, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.optimizers import (
    dampened_trace,
    label_parameters,
    rprop,
    scale_by_adagrad,
    scale_by_amsgrad,
    scale_by_nadam,
    scale_by_radam,
)

from .compare import array, close

STEPS = 9
START = [array(3, 4, seed=1), array(4, seed=2), np.zeros(3)]
"""Two ordinary parameters, and one that starts at zero."""


def gradients(step: int) -> list[np.ndarray]:
    """Gradients of one step: signed, of very different sizes, some of them zero."""
    grads = [array(*p.shape, seed=10 + step) * 10.0 ** (step % 3 - 1) for p in START]
    grads[0][0] = 0.0
    grads[2][step % 3] = 0.0
    return grads


def same_trajectory(
    tx: optax.GradientTransformation, make: Callable[[Sequence[torch.Tensor]], torch.optim.Optimizer]
) -> None:
    """Compares all parameters after each update; the JAX side runs under jit."""
    tensors = [torch.from_numpy(p.copy()).requires_grad_() for p in START]
    optimizer = make(tensors)
    params: Any = [jnp.asarray(p) for p in START]
    state = tx.init(params)

    @jax.jit
    def step(params: Any, state: Any, grads: Any) -> tuple[Any, Any]:
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    for count in range(STEPS):
        for tensor, grad in zip(tensors, gradients(count), strict=True):
            tensor.grad = torch.from_numpy(grad)
        optimizer.step()
        params, state = step(params, state, [jnp.asarray(g) for g in gradients(count)])
        for got, want in zip(params, tensors, strict=True):
            close(got, want.detach().numpy(), f"parameter after update {count}")


def rate(tx: optax.GradientTransformation, lr: float) -> optax.GradientTransformation:
    return optax.chain(tx, optax.scale_by_learning_rate(lr))


@pytest.mark.parametrize("dampening", [0.0, 0.3, 1.0])
def test_dampened_momentum(dampening: float) -> None:
    same_trajectory(
        rate(dampened_trace(0.9, dampening), 0.05),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=dampening),
    )


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.7)])
def test_amsgrad(betas: tuple[float, float]) -> None:
    same_trajectory(
        rate(scale_by_amsgrad(*betas, eps=1e-6), 0.05),
        lambda p: torch.optim.Adam(p, lr=0.05, betas=betas, eps=1e-6, amsgrad=True),
    )


@pytest.mark.parametrize("lr_decay", [0.0, 0.1])
@pytest.mark.parametrize("start", [0.0, 0.2])
def test_adagrad(lr_decay: float, start: float) -> None:
    same_trajectory(
        rate(scale_by_adagrad(lr_decay, start), 0.1),
        lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=lr_decay, initial_accumulator_value=start),
    )


@pytest.mark.parametrize("momentum_decay", [4e-3, 0.1])
def test_nadam(momentum_decay: float) -> None:
    """PyTorch keeps the product of its momenta in the default dtype."""
    torch.set_default_dtype(torch.float64)
    try:
        same_trajectory(
            rate(scale_by_nadam(0.8, 0.95, momentum_decay=momentum_decay), 0.05),
            lambda p: torch.optim.NAdam(p, lr=0.05, betas=(0.8, 0.95), momentum_decay=momentum_decay),
        )
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.8, 0.7), (0.9, 0.99)])
def test_radam_before_and_after_rectification(betas: tuple[float, float]) -> None:
    same_trajectory(
        rate(scale_by_radam(*betas), 0.05),
        lambda p: torch.optim.RAdam(p, lr=0.05, betas=betas),
    )


@pytest.mark.parametrize("sizes", [(1e-6, 50), (0.01, 0.08)])
def test_rprop(sizes: tuple[float, float]) -> None:
    same_trajectory(
        rprop(0.05, 0.3, 1.5, *sizes), lambda p: torch.optim.Rprop(p, lr=0.05, etas=(0.3, 1.5), step_sizes=sizes)
    )


@pytest.mark.parametrize("name", ["dampened", "amsgrad", "adagrad", "nadam", "radam"])
def test_parameters_keep_their_dtype(name: str) -> None:
    tx = {
        "dampened": dampened_trace(0.9, 0.5),
        "amsgrad": scale_by_amsgrad(),
        "adagrad": scale_by_adagrad(0.1),
        "nadam": scale_by_nadam(),
        "radam": scale_by_radam(),
    }[name]
    params = {"w": jnp.ones(3, jnp.float32)}
    updates, state = tx.update(params, tx.init(params), params)
    assert updates["w"].dtype == jnp.float32
    assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, tx.init(params))


class Two(nnx.Module):
    """A body and a head."""

    def __init__(self, rngs: nnx.Rngs):
        self.body = nnx.List([nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 4, rngs=rngs)])
        self.head = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.body:
            x = layer(x)
        return self.head(x)


def test_labels_name_parameters_by_their_path() -> None:
    model = Two(nnx.Rngs(0))
    seen = []

    def label(name: str, parameter: jax.Array) -> str:
        seen.append((name, parameter.ndim))
        return "head" if name.startswith("head.") else "body"

    tx = optax.multi_transform({"head": optax.sgd(0.0), "body": optax.sgd(1.0)}, label_parameters(label))
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    assert ("body.0.kernel", 2) in seen and ("head.bias", 1) in seen
    seen.clear()
    before = {"head": model.head.kernel[...], "body": model.body[0].kernel[...]}

    @nnx.jit
    def step(model: Two, optimizer: nnx.Optimizer) -> None:
        grads = nnx.grad(lambda m: m(jnp.ones((2, 3))).sum())(model)
        optimizer.update(model, grads)

    step(model, optimizer)
    assert ("body.0.kernel", 2) in seen and ("head.bias", 1) in seen
    assert np.array_equal(model.head.kernel[...], before["head"])
    assert not np.array_equal(model.body[0].kernel[...], before["body"])
