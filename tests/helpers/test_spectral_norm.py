"""Spectral normalisation against PyTorch's: outputs, the trained weight, the vectors of the power iteration."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from t2j_lsp import load_torch_state, torch_state
from t2j_lsp.rules.helpers.checkpoints import StateDict
from t2j_lsp.rules.helpers.names import torch_name
from t2j_lsp.rules.helpers.spectral_norm import SpectralNorm

from .compare import array


def pair(kind: str, steps: int) -> tuple[torch.nn.Module, SpectralNorm, np.ndarray]:
    rngs = nnx.Rngs(0)
    if kind == "linear":
        layer: nnx.Module = nnx.Linear(3, 5, param_dtype=jnp.float64, rngs=rngs)
        reference, x = torch.nn.Linear(3, 5), array(4, 3)
    else:
        layer = nnx.Conv(3, 5, (2, 3), padding="VALID", param_dtype=jnp.float64, rngs=rngs)
        reference, x = torch.nn.Conv2d(3, 5, (2, 3)), array(2, 3, 6, 7)
    module = SpectralNorm(layer, n_power_iterations=steps, rngs=rngs)
    reference = torch.nn.utils.spectral_norm(reference.double(), n_power_iterations=steps)
    load_torch_state(module, {name: value.numpy() for name, value in reference.state_dict().items()})
    return reference, module, x


@pytest.mark.parametrize(("kind", "steps"), [("linear", 1), ("linear", 3), ("conv", 1)])
@pytest.mark.parametrize("graph", [True, False])
def test_spectral_norm_trains_as_in_torch(kind: str, steps: int, graph: bool) -> None:
    reference, module, x = pair(kind, steps)
    optimizer, jax_side = (
        torch.optim.SGD(reference.parameters(), lr=0.1),
        nnx.Optimizer(module, optax.sgd(0.1), wrt=nnx.Param),
    )

    @nnx.jit(graph=graph)
    def step(module: SpectralNorm, optimizer: nnx.Optimizer[SpectralNorm], x: jnp.ndarray) -> jnp.ndarray:
        def loss_fn(module: SpectralNorm) -> jnp.ndarray:
            return jnp.mean(module(x) ** 2) + jnp.mean(jnp.tanh(module(2 * x)))

        loss, grads = nnx.value_and_grad(loss_fn, graph=graph)(module)
        optimizer.update(module, grads)
        return loss

    given, last = torch.from_numpy(x), jnp.moveaxis(jnp.asarray(x), 1, -1)
    for _ in range(2):
        loss = (reference(given) ** 2).mean() + reference(2 * given).tanh().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(step(module, jax_side, last), loss.item(), rtol=1e-12)
    state = torch_state(module)
    assert set(state) == {"weight_orig", "bias", "weight_u", "weight_v"}
    for name, value in reference.state_dict().items():
        np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-10, atol=1e-14, err_msg=name)
    reference.eval(), module.eval()
    before = np.array(module.weight_u[...])
    np.testing.assert_allclose(jnp.moveaxis(module(last), -1, 1), reference(given).detach().numpy(), rtol=1e-10)
    np.testing.assert_array_equal(module.weight_u[...], before)


def test_what_programs_call_its_parts_has_no_name_of_the_layer_inside() -> None:
    module = nnx.Sequential(pair("linear", 1)[1])
    assert set(StateDict(module)) == {"0.weight", "0.bias", "0.weight_u", "0.weight_v"}
    assert torch_name(module, ("layers", 0, "layer_instance", "kernel")) == "0.weight"
