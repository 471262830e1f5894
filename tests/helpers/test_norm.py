"""Normalization helpers against torch: running buffers over two steps, channel axes, large means, zero rows."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import norm, norm_functions
from tests.helpers.compare import array, close, copy_state, randomize, same_distribution, same_function, same_module

# A mean far above the spread: the two-pass variance is needed.
FAR = array(3, 6, 5, 4) * 1e-2 + 50.0
LAYERS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], np.ndarray]] = {
    "batch norm 1d, two axes": ("BatchNorm1d", (6,), {}, array(5, 6)),
    "batch norm 1d, three axes": ("BatchNorm1d", (6,), {"eps": 1e-3, "momentum": 0.3}, array(5, 6, 3)),
    "batch norm 2d": ("BatchNorm2d", (6,), {}, FAR),
    "batch norm 2d without affine": ("BatchNorm2d", (6,), {"affine": False}, array(3, 6, 5, 4)),
    "batch norm 2d without statistics": ("BatchNorm2d", (6,), {"track_running_stats": False}, array(3, 6, 5, 4)),
    "batch norm 2d with a plain average": ("BatchNorm2d", (6,), {"momentum": None}, array(3, 6, 5, 4)),
    "batch norm 3d": ("BatchNorm3d", (3,), {}, array(2, 3, 2, 4, 3)),
    "layer norm": ("LayerNorm", (4,), {}, FAR),
    "layer norm over two axes": ("LayerNorm", ((5, 4),), {"eps": 1e-3}, array(3, 5, 4)),
    "layer norm without bias": ("LayerNorm", ([4],), {"bias": False}, array(3, 4) * 1e-3),
    "layer norm without affine": ("LayerNorm", (4,), {"elementwise_affine": False}, array(3, 4)),
    "group norm": ("GroupNorm", (3, 6), {}, FAR),
    "group norm of two axes": ("GroupNorm", (2, 6), {"eps": 1e-2}, array(3, 6)),
    "group norm without affine": ("GroupNorm", (1, 6), {"affine": False}, array(3, 6, 5)),
    "instance norm 1d": ("InstanceNorm1d", (6,), {}, array(3, 6, 5)),
    "instance norm 1d without batch": ("InstanceNorm1d", (6,), {}, array(6, 5)),
    "instance norm 2d, affine": ("InstanceNorm2d", (6,), {"affine": True, "eps": 1e-2}, FAR),
    "instance norm 3d": ("InstanceNorm3d", (3,), {"affine": True}, array(2, 3, 2, 4, 3)),
    "rms norm": ("RMSNorm", (4,), {}, array(3, 4) * 1e-8),
    "rms norm over two axes": ("RMSNorm", ((5, 4),), {"eps": 1e-2}, array(3, 5, 4)),
    "rms norm without affine": ("RMSNorm", (4,), {"elementwise_affine": False}, array(3, 4)),
    "local response norm": ("LocalResponseNorm", (3,), {"alpha": 0.5, "beta": 0.7, "k": 2.0}, array(2, 6, 5, 4)),
    "local response norm of an even size": ("LocalResponseNorm", (4,), {"alpha": 0.5}, array(2, 6, 5)),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYERS)
def test_layer_agrees_with_torch_in_training_twice_and_in_evaluation(case: str) -> None:
    name, arguments, options, x = LAYERS[case]
    module = getattr(norm, name)(*arguments, **options, rngs=nnx.Rngs(0))
    reference = getattr(torch.nn, name)(*arguments, **options)
    tolerance = 1e-9 if x is FAR or np.abs(x).max() < 1e-6 else 1e-11
    same_module(module, reference, x, jit=True, tolerance=tolerance)
    same_module(module, reference, x[::-1] * 1.5, copy=False, jit=True, tolerance=tolerance)
    if case.startswith("batch norm"):
        same_module(module, reference, x, train=False, copy=False, jit=True, tolerance=tolerance)


def test_batch_norm_runs_eagerly() -> None:
    module, reference = norm.BatchNorm2d(3, rngs=nnx.Rngs(0)), torch.nn.BatchNorm2d(3)
    same_module(module, reference, array(2, 3, 2, 2))
    same_module(module, reference, array(2, 3, 2, 2), train=False, copy=False)


def test_channels_last_batch_norm_keeps_torch_running_statistics() -> None:
    module, reference = norm.BatchNorm(3, momentum=0.8, rngs=nnx.Rngs(0)), torch.nn.BatchNorm2d(3, momentum=0.2)
    copy_state(randomize(reference), module)
    x = array(2, 3, 2, 4)
    want = reference(torch.from_numpy(x)).detach()
    close(jnp.moveaxis(module(jnp.moveaxis(jnp.asarray(x), 1, -1)), -1, 1), want, "output")
    close(module.mean[...], reference.running_mean, "running mean")
    close(module.var[...], reference.running_var, "running variance")
    module.eval()
    assert module(jnp.ones((1, 2, 2, 3))).shape == (1, 2, 2, 3)


def test_one_value_per_channel_cannot_be_normalized_in_training() -> None:
    module = norm.BatchNorm2d(3, rngs=nnx.Rngs(0))
    with pytest.raises(ZeroDivisionError):
        module(jnp.ones((1, 3, 1, 1)))
    module.eval()
    assert module(jnp.ones((1, 3, 1, 1))).shape == (1, 3, 1, 1)


def test_train_step_under_nnx_transformations_updates_the_running_statistics() -> None:
    module, reference = norm.BatchNorm1d(3, rngs=nnx.Rngs(0)), torch.nn.BatchNorm1d(3)
    copy_state(randomize(reference), module)

    @nnx.jit
    def step(model: norm.BatchNorm1d, x: jax.Array) -> nnx.State:
        return nnx.grad(lambda model: jnp.sum(model(x) ** 2))(model)

    x = array(4, 3)
    step(module, jnp.asarray(x))
    reference(torch.from_numpy(x))
    close(module.mean[...], reference.running_mean, "running mean")
    close(module.var[...], reference.running_var, "running variance")


def test_instance_norm_keeps_running_statistics() -> None:
    reference = torch.nn.InstanceNorm2d(3, momentum=0.3, affine=True, track_running_stats=True).double()
    module = norm.InstanceNorm2d(3, momentum=0.3, affine=True, track_running_stats=True, rngs=nnx.Rngs(0))
    for seed in range(2):
        x = np.random.default_rng(seed).normal(3.0, 2.0, (4, 3, 6, 5))
        close(module(jnp.asarray(x)), reference(torch.from_numpy(x)).detach().numpy(), "training")
    close(module.mean[...], reference.running_mean, "running mean")
    close(module.var[...], reference.running_var, "running variance")
    module.eval(), reference.eval()
    close(module(jnp.asarray(x)), reference(torch.from_numpy(x)).detach().numpy(), "evaluation")


def test_fresh_parameters_are_those_of_torch() -> None:
    same_distribution(norm.BatchNorm2d(5, rngs=nnx.Rngs(0)), torch.nn.BatchNorm2d(5))
    same_distribution(norm.LayerNorm((5, 2), rngs=nnx.Rngs(0)), torch.nn.LayerNorm((5, 2)))
    same_distribution(norm.InstanceNorm2d(5, affine=True, rngs=nnx.Rngs(0)), torch.nn.InstanceNorm2d(5, affine=True))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]] = {
    "layer norm": (
        lambda x, w, b: norm_functions.layer_norm(x, (5, 4), w, b, 1e-3),
        lambda x, w, b: F.layer_norm(x, (5, 4), w, b, 1e-3),
        [array(3, 5, 4), array(5, 4), array(5, 4, seed=1)],
    ),
    "layer norm without weights": (
        lambda x: norm_functions.layer_norm(x, (4,)), lambda x: F.layer_norm(x, (4,)), [array(3, 4)],
    ),
    "group norm": (
        lambda x, w, b: norm_functions.group_norm(x, 3, w, b),
        lambda x, w, b: F.group_norm(x, 3, w, b),
        [array(2, 6, 5, 4), array(6), array(6, seed=1)],
    ),
    "instance norm": (
        lambda x, w, b: norm_functions.instance_norm(x, weight=w, bias=b),
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        [array(2, 6, 5), array(6), array(6, seed=1)],
    ),
    "batch norm in evaluation": (
        lambda x, m, v, w, b: norm_functions.batch_norm(x, m, v, w, b),
        lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach(), w, b),
        [array(2, 6, 5), array(6, seed=1), array(6, seed=2, low=0.5), array(6, seed=3), array(6, seed=4)],
    ),
    "batch norm in training": (
        lambda x, w, b: norm_functions.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [array(2, 6, 5), array(6, seed=3), array(6, seed=4)],
    ),
    "rms norm": (
        lambda x, w: norm_functions.rms_norm(x, (4,), w), lambda x, w: F.rms_norm(x, (4,), w), [array(3, 4), array(4)],
    ),
    "local response norm": (
        lambda x: norm_functions.local_response_norm(x, 5, 0.9),
        lambda x: F.local_response_norm(x, 5, 0.9),
        [array(2, 6, 3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FUNCTIONS)
def test_function_agrees_with_torch(case: str) -> None:
    function, reference, inputs = FUNCTIONS[case]
    if case == "batch norm in evaluation":  # PyTorch gives no gradient to running statistics

        def fixed(x: jax.Array, m: jax.Array, v: jax.Array, *rest: jax.Array) -> jax.Array:
            return norm_functions.batch_norm(x, jax.lax.stop_gradient(m), jax.lax.stop_gradient(v), *rest)

        function = fixed
    same_function(function, reference, *inputs, jit=True)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_normalize_agrees_with_torch_also_at_a_zero_vector(p: float) -> None:
    x = array(3, 4, 2)
    x[1, :, 0] = 0.0
    x[2, 1] = 0.0
    x[0, :, 1] *= 1e-14  # a norm below eps
    same_function(
        lambda x: norm_functions.normalize(x, p), lambda x: F.normalize(x, p), x, jit=True, tolerance=1e-10
    )  # fmt: skip
    same_function(
        lambda x: norm_functions.normalize(x, p, dim=-1), lambda x: F.normalize(x, p, dim=-1), array(3, 4, 2), jit=True
    )


def test_running_statistics_are_updated_as_by_batch_norm_in_place() -> None:
    x, mean, var = array(3, 6, 4), array(6), array(6, low=0.5)
    want_mean, want_var = torch.from_numpy(mean.copy()), torch.from_numpy(var.copy())
    F.batch_norm(torch.from_numpy(x), want_mean, want_var, training=True, momentum=0.3)
    got = norm_functions.updated_running_stats(jnp.asarray(x), jnp.asarray(mean), jnp.asarray(var), 0.3)
    close(got[0], want_mean, "running mean")
    close(got[1], want_var, "running variance")


@pytest.mark.parametrize("name", ["LayerNorm", "GroupNorm", "RMSNorm"])
def test_half_precision_is_normalized_in_float32(name: str) -> None:
    x = (array(2, 8) * 30).astype(np.float16)
    arguments = (2, 8) if name == "GroupNorm" else (8,)
    reference = getattr(torch.nn, name)(*arguments).half()
    module = getattr(norm, name)(*arguments, rngs=nnx.Rngs(0))
    module = jax.tree.map(lambda p: p.astype(jnp.float16) if p.dtype == jnp.float32 else p, module)
    want = reference(torch.from_numpy(x)).detach().numpy()
    got = np.asarray(module(jnp.asarray(x)))
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), atol=2e-3)


def test_plain_flax_layers_are_exact_with_these_settings() -> None:
    """The forms that rules emit where the layer is known: no helper needed."""
    rngs = nnx.Rngs(0)
    layer = nnx.LayerNorm(4, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
    same_module(layer, torch.nn.LayerNorm(4), FAR, jit=True, tolerance=1e-9)

    class ChannelsFirst(nnx.Module):
        def __init__(self, layer: nnx.Module):
            self.layer = layer

        def __call__(self, x: jax.Array) -> jax.Array:
            return jnp.moveaxis(self.layer(jnp.moveaxis(x, 1, -1)), -1, 1)

    class Wrapped(torch.nn.Module):
        def __init__(self, layer: torch.nn.Module):
            super().__init__()
            self.layer = layer

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    group = nnx.GroupNorm(6, num_groups=3, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
    same_module(ChannelsFirst(group), Wrapped(torch.nn.GroupNorm(3, 6)), FAR, jit=True, tolerance=1e-9)
    instance = nnx.InstanceNorm(
        6, epsilon=1e-5, use_bias=False, use_scale=False, use_fast_variance=False, rngs=rngs
    )  # fmt: skip
    same_module(ChannelsFirst(instance), Wrapped(torch.nn.InstanceNorm2d(6)), FAR, jit=True, tolerance=1e-9)
    rms = nnx.RMSNorm(4, epsilon=1e-6, rngs=rngs)
    same_module(rms, torch.nn.RMSNorm(4, eps=1e-6), array(3, 4), jit=True)
    batch = nnx.BatchNorm(
        6, use_running_average=True, axis=1, momentum=0.9, epsilon=1e-5, use_fast_variance=False, rngs=rngs
    )  # fmt: skip
    same_module(batch, torch.nn.BatchNorm2d(6), FAR, train=False, jit=True)
