"""Clipping and host-side learning rates against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.functional_call import named_variables
from t2j_lsp.rules.helpers.training import (
    LRScheduler,
    MomentumLRScheduler,
    OwnLRScheduler,
    ReduceLROnPlateau,
    bound_forward,
    bound_jit,
    clip_grad_norm,
    clip_grad_norm_of,
    grad_norm,
    grad_norm_of,
    is_trainable,
    is_training,
    polyak_step,
    set_trainable,
)

from .compare import array, close

GRADS = [array(3, 4, seed=1), array(5, seed=2), array(1, seed=3)]


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 0.0, 1e4])
def test_clip_grad_norm(norm_type: float, scale: float) -> None:
    """The 1e-6 shows where the norm itself is that small."""
    tensors = [torch.zeros(g.shape, dtype=torch.float64) for g in GRADS]
    for tensor, grad in zip(tensors, GRADS, strict=True):
        tensor.grad = torch.from_numpy(grad * scale)
    limit = 0.5 if scale >= 1 else 1e-6
    norm = torch.nn.utils.clip_grad_norm_(tensors, limit, norm_type)
    grads = [jnp.asarray(g * scale) for g in GRADS]
    of_order = norm_type != 2
    close(grad_norm_of(grads, norm_type) if of_order else grad_norm(grads), norm.numpy(), "norm")
    clipped = clip_grad_norm_of(grads, limit, norm_type) if of_order else clip_grad_norm(grads, limit)
    for got, tensor in zip(clipped, tensors, strict=True):
        assert tensor.grad is not None
        close(got, tensor.grad.numpy(), "clipped", 1e-13 * limit)


class Flagged(nnx.Module):
    deterministic: bool = False

    def __init__(self, inner: nnx.Module):
        self.inner = inner


@pytest.mark.parametrize(
    "module",
    [
        nnx.Dropout(0.1, rngs=nnx.Rngs(0)),
        nnx.BatchNorm(3, rngs=nnx.Rngs(0)),
        nnx.Sequential(nnx.Linear(3, 3, rngs=nnx.Rngs(0)), nnx.BatchNorm(3, rngs=nnx.Rngs(0))),
        Flagged(nnx.Linear(3, 3, rngs=nnx.Rngs(0))),
    ],
)
def test_the_mode_is_what_was_set(module: nnx.Module) -> None:
    assert is_training(module)
    module.eval()
    assert not is_training(module)
    module.train()
    assert is_training(module)


def test_a_flag_of_its_own_counts_before_those_of_parts() -> None:
    module = Flagged(nnx.BatchNorm(3, rngs=nnx.Rngs(0)))
    module.inner.eval()
    assert is_training(module)
    module.eval()
    module.inner.train()
    assert not is_training(module)


def test_a_module_whose_parts_have_no_mode_counts_as_training() -> None:
    assert is_training(nnx.Linear(3, 3, rngs=nnx.Rngs(0)))


def injected(**hyperparameters: float) -> nnx.Optimizer:
    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    return nnx.Optimizer(model, optax.inject_hyperparams(optax.sgd)(**hyperparameters), wrt=nnx.Param)


def test_scheduler_sets_every_hyperparameter_it_has_a_schedule_for() -> None:
    optimizer = injected(learning_rate=0.5, momentum=0.9)
    scheduler = MomentumLRScheduler(optimizer, lambda t: 0.5 / (1 + t), momentum=lambda t: 0.1 * t)
    seen = []
    for _ in range(3):
        seen.append([optax.tree.get(optimizer.opt_state, n).item() for n in ("learning_rate", "momentum")])
        np.testing.assert_allclose(scheduler.get_last_lr(), seen[-1][:1], rtol=1e-7)  # kept in the parameters' float32
        scheduler.step()
    np.testing.assert_allclose(seen, [[0.5, 0.0], [0.25, 0.1], [0.5 / 3, 0.2]], atol=1e-15)
    scheduler.step(9)
    assert scheduler.last_epoch == 9
    np.testing.assert_allclose(scheduler.get_last_lr(), [0.05])


def test_a_hyperparameter_that_began_as_an_integer_takes_fractions() -> None:
    optimizer = injected(learning_rate=1)
    LRScheduler(optimizer, lambda count: 0.25)
    assert optax.tree.get(optimizer.opt_state, "learning_rate").item() == 0.25


class Halved(OwnLRScheduler):
    def get_lr(self) -> list[float]:
        return [rate / 2**self.last_epoch for rate in self.base_lrs]


def test_a_derived_scheduler_sets_what_it_computes() -> None:
    optimizer = injected(learning_rate=0.3, momentum=0.9)
    scheduler = Halved(optimizer)
    assert scheduler.base_lrs == [0.3]  # and not the float32
    scheduler.step()
    assert scheduler.get_last_lr() == [0.15]
    np.testing.assert_allclose(optax.tree.get(optimizer.opt_state, "learning_rate").item(), 0.15, rtol=1e-7)
    resumed = Halved(optimizer)
    assert resumed.base_lrs == [0.15]
    resumed.load_state_dict(scheduler.state_dict())
    resumed.step(3)
    assert resumed.get_last_lr() == [0.3 / 8]
    with pytest.raises(AssertionError, match="inject_hyperparams"):
        Halved(nnx.Optimizer(nnx.Linear(2, 1, rngs=nnx.Rngs(0)), optax.sgd(0.3), wrt=nnx.Param))


def test_scheduled_rate_is_used_by_a_compiled_step() -> None:
    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.inject_hyperparams(optax.sgd)(learning_rate=1.0), wrt=nnx.Param)
    scheduler = LRScheduler(optimizer, lambda count: 0.5**count)

    @nnx.jit
    def step(model: nnx.Linear, optimizer: nnx.Optimizer) -> None:
        optimizer.update(model, nnx.grad(lambda m: m.bias[...].sum())(model))

    for count in range(4):
        before = model.bias[...]
        step(model, optimizer)
        np.testing.assert_allclose(before - model.bias[...], 0.5**count, atol=1e-6)
        scheduler.step()


METRICS = [3.0, 2.0, 2.0, 1.99999, 2.5, 2.0, 2.0, 2.0, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.0, float("nan"), 2.0, 2.0]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize(("patience", "cooldown", "min_lr"), [(0, 0, 0.0), (2, 0, 0.05), (1, 2, 0.0)])
def test_plateau(mode: str, threshold_mode: str, patience: int, cooldown: int, min_lr: float) -> None:
    options = {
        "mode": mode, "factor": 0.5, "patience": patience, "threshold": 0.01, "threshold_mode": threshold_mode,
        "cooldown": cooldown, "min_lr": min_lr,
    }  # fmt: skip
    reference_optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    reference = torch.optim.lr_scheduler.ReduceLROnPlateau(reference_optimizer, **options)
    scheduler = ReduceLROnPlateau(injected(learning_rate=0.4), **options)
    for metric in METRICS:
        reference.step(metric)
        scheduler.step(jnp.asarray(metric))
        np.testing.assert_allclose(scheduler.get_last_lr(), reference.get_last_lr(), rtol=1e-6)
        assert scheduler.num_bad_epochs == reference.num_bad_epochs
    assert scheduler.last_epoch == reference.last_epoch


def test_frozen_parameters_are_left_by_an_optimizer_that_is_made_behind() -> None:
    net = nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.Linear(3, 1, rngs=nnx.Rngs(1)))
    set_trainable(net.layers[0], False)
    optimizer = nnx.Optimizer(net, optax.sgd(0.1), wrt=is_trainable)
    grads = nnx.grad(lambda m: m(jnp.ones((4, 2))).sum(), argnums=nnx.DiffState(0, optimizer.wrt))(net)
    before = [jnp.array(layer.kernel[...]) for layer in net.layers]
    optimizer.update(net, grads)
    assert (net.layers[0].kernel[...] == before[0]).all() and (net.layers[1].kernel[...] != before[1]).any()
    set_trainable(net, True)
    assert len(jax.tree.leaves(nnx.state(net, is_trainable))) == 4


def test_variables_have_the_names_and_the_order_of_pytorch() -> None:
    net = nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.BatchNorm(3, rngs=nnx.Rngs(1)))
    named = named_variables(net)
    assert [name for name, _ in named] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert named[0][1] is net.layers[0].kernel


def test_a_bound_function_knows_the_objects_of_each_call() -> None:
    traced = []

    def step(model: nnx.Linear, optimizer: nnx.Optimizer, x: jax.Array, loss: Callable[..., Any]) -> jax.Array:
        traced.append(loss)
        value, grads = nnx.value_and_grad(lambda model: loss(model(x)))(model)
        optimizer.update(model, grads)
        return value

    x = array(5, 3, seed=4)
    for seed, loss in ((0, jnp.mean), (1, jnp.max), (0, jnp.mean)):
        model = nnx.Linear(3, 1, rngs=nnx.Rngs(seed))
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        for scale in (1.0, 2.0):
            wanted = loss(model(scale * x))
            got = bound_jit(step, model, optimizer, loss=loss)(scale * x)
            close(got, wanted, what="loss")
            model.kernel[...] *= 0.5
    assert traced == [jnp.mean, jnp.max, jnp.mean]


def test_a_bound_pass_and_a_bound_average_see_what_changed_between_calls() -> None:
    target, source = (nnx.Linear(3, 1, rngs=nnx.Rngs(seed)) for seed in range(2))
    x, first = array(5, 3, seed=4), target.kernel[...]
    for share in (0.5, 0.25):
        wanted = (1 - share) * target.kernel[...] + share * source.kernel[...]
        bound_jit(polyak_step, target, source)(share)
        close(target.kernel[...], wanted, what="average")
        close(bound_forward(target)(x), target(x), what="pass")
    assert not jnp.allclose(first, target.kernel[...])
