"""Weight normalisation against PyTorch's: outputs, gradients, names, and training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx
from torch.nn.utils import parametrizations

from t2j_lsp import load_torch_state, torch_state
from t2j_lsp.rules.helpers.weight_norm import WeightNorm

from .compare import array

F64 = {"param_dtype": jnp.float64}
CONV = {"kernel_size": (3,), "padding": "VALID", **F64}
KINDS: dict[str, tuple[Callable[[], torch.nn.Module], Callable[[nnx.Rngs], Any], tuple[int, ...]]] = {
    "linear": (lambda: torch.nn.Linear(3, 5), lambda rngs: nnx.Linear(3, 5, **F64, rngs=rngs), (4, 3)),
    "conv": (
        lambda: torch.nn.Conv1d(4, 6, 3, groups=2),
        lambda rngs: nnx.Conv(4, 6, feature_group_count=2, **CONV, rngs=rngs),
        (2, 4, 7),
    ),
    "transposed": (
        lambda: torch.nn.ConvTranspose1d(4, 6, 3),
        lambda rngs: nnx.ConvTranspose(4, 6, transpose_kernel=True, **CONV, rngs=rngs),
        (2, 4, 7),
    ),
    "transposed, as Flax has it": (
        lambda: torch.nn.ConvTranspose1d(4, 6, 3),
        lambda rngs: nnx.ConvTranspose(4, 6, **CONV, rngs=rngs),
        (2, 4, 7),
    ),
}


@pytest.mark.parametrize(("kind", "dim"), [*((k, d) for k in KINDS for d in (0, 1)), ("conv", 2)])
@pytest.mark.parametrize("parametrized", [True, False])
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
def test_weight_norm_trains_as_in_torch(kind: str, dim: int, parametrized: bool) -> None:
    reference, layer, shape = KINDS[kind]
    wrap = parametrizations.weight_norm if parametrized else torch.nn.utils.weight_norm
    reference = wrap(reference().double(), dim=dim)
    module, x = WeightNorm(layer(nnx.Rngs(0)), dim, parametrized=parametrized), array(*shape)
    state = {name: 1.5 * value.numpy() for name, value in reference.state_dict().items()}
    load_torch_state(module, state)
    reference.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    trained = nnx.Optimizer(module, optax.sgd(0.1), wrt=nnx.Param)
    given = jnp.moveaxis(jnp.asarray(x), 1, -1)
    for _ in range(2):
        loss = reference(torch.from_numpy(x)).tanh().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value, grads = nnx.value_and_grad(lambda m: jnp.mean(jnp.tanh(m(given)) ** 2))(module)
        trained.update(module, grads)
        np.testing.assert_allclose(value, loss.item(), rtol=1e-12)
    state = torch_state(module)
    assert set(state) == set(reference.state_dict())
    for name, value in reference.state_dict().items():
        np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-10, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_its_length_is_that_of_the_layer_s_weight_at_first(kind: str) -> None:
    layer, x = KINDS[kind][1](nnx.Rngs(0)), jnp.asarray(array(*KINDS[kind][2]))
    x = jnp.moveaxis(x, 1, -1)
    np.testing.assert_allclose(WeightNorm(layer, 0)(x), layer(x), rtol=1e-12)
