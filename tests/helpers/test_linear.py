"""Linear layers and reshaping modules against torch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import linear
from t2j_lsp.translate.source.folding.tied import TIED, as_product
from tests.helpers.compare import array, changed_helper, same_distribution, same_module


@pytest.mark.parametrize("bias", [True, False])
def test_linear_agrees_with_torch_on_inputs_of_any_rank(bias: bool) -> None:
    module, reference = linear.Linear(5, 3, bias, rngs=nnx.Rngs(0)), torch.nn.Linear(5, 3, bias)
    same_module(module, reference, array(2, 5))
    same_module(module, reference, array(2, 4, 5), jit=True)
    same_module(module, reference, array(5), jit=True)
    assert module.weight.shape == tuple(reference.weight.shape)
    assert isinstance(module, nnx.Linear)


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_agrees_with_torch(bias: bool) -> None:
    module, reference = linear.Bilinear(5, 4, 3, bias, rngs=nnx.Rngs(0)), torch.nn.Bilinear(5, 4, 3, bias)
    same_module(module, reference, array(2, 6, 5), array(2, 6, 4), jit=True)


def test_fresh_parameters_are_distributed_as_in_torch() -> None:
    torch.manual_seed(0)
    same_distribution(linear.Linear(50, 2000, rngs=nnx.Rngs(0)), torch.nn.Linear(50, 2000))
    same_distribution(linear.Bilinear(50, 20, 500, rngs=nnx.Rngs(0)), torch.nn.Bilinear(50, 20, 500))


class TiedTorch(torch.nn.Module):
    """A table of tokens whose weight the output layer shares."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(7, 4)
        self.head = torch.nn.Linear(4, 7, bias)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.table(ids)))


class TiedFlax(nnx.Module):
    """The same with `TiedLinear`, or with what is enough for most programs."""

    def __init__(self, bias: bool, rngs: nnx.Rngs, tied: Any):
        self.table = nnx.Embed(7, 4, rngs=rngs)
        own = nnx.Linear(4, 7, use_bias=bias, rngs=rngs)
        self.head = tied(self.table.embedding, own.bias)

    def __call__(self, ids: jax.Array) -> jax.Array:
        return self.head(jnp.tanh(self.table(ids)))


@pytest.mark.parametrize("tied", [linear.TiedLinear, changed_helper(linear, TIED, as_product)])
@pytest.mark.parametrize("bias", [True, False])
def test_tied_weight_gets_the_gradients_of_both_uses(bias: bool, tied: Any) -> None:
    reference, module = TiedTorch(bias).double(), TiedFlax(bias, nnx.Rngs(0), tied)
    module.table.dtype = None  # nnx.Embed pins float32 otherwise
    module.table.embedding.set_value(jnp.asarray(reference.table.weight.detach().numpy()))
    if bias:
        module.head.bias.set_value(jnp.asarray(reference.head.bias.detach().numpy()))
    ids, cotangent = np.array([[1, 3, 3], [0, 6, 1]]), array(2, 3, 7)
    (reference(torch.from_numpy(ids)) * torch.from_numpy(cotangent)).sum().backward()
    grads = nnx.grad(lambda m: jnp.sum(m(jnp.asarray(ids)) * cotangent))(module)
    leaves = jax.tree.leaves(nnx.state(grads))
    assert len(leaves) == 1 + bias
    (table_grad,) = [g for g in leaves if g.shape == (7, 4)]
    np.testing.assert_allclose(table_grad, reference.table.weight.grad.numpy(), atol=1e-12)
    assert module.head.weight is module.table.embedding


def test_the_kernel_of_a_tied_linear_is_the_transposed_weight() -> None:
    module = TiedFlax(True, nnx.Rngs(0), linear.TiedLinear)
    table, kernel = module.table.embedding, module.head.kernel
    assert isinstance(module.head, nnx.Linear)
    assert (kernel.shape, kernel.ndim, kernel.dtype) == ((4, 7), 2, table.dtype)
    np.testing.assert_array_equal(kernel[...], table[...].T)
    np.testing.assert_array_equal(kernel.T, table[...])
    kernel[0] = jnp.arange(7.0)
    np.testing.assert_array_equal(table[:, 0], np.arange(7.0))
    kernel[...] = jnp.ones((4, 7))
    np.testing.assert_array_equal(table[...], np.ones((7, 4)))
    assert [path for path, _ in nnx.to_flat_state(nnx.state(module, nnx.Param))] == [
        ("head", "bias"),
        ("head", "weight"),
    ]


def test_reshaping_modules_agree_with_torch() -> None:
    x = array(2, 3, 4, 5)
    same_module(linear.Flatten(), torch.nn.Flatten(), x)
    same_module(linear.Flatten(0, -2), torch.nn.Flatten(0, -2), x)
    same_module(linear.Flatten(), torch.nn.Flatten(), np.zeros((0, 3, 2)))
    same_module(linear.Unflatten(-1, (5, 1)), torch.nn.Unflatten(-1, (5, 1)), x)
    same_module(linear.Unflatten(2, [2, -1]), torch.nn.Unflatten(2, (2, -1)), x, jit=True)


def test_identity_takes_any_arguments() -> None:
    same_module(linear.Identity(3, unused=True, rngs=nnx.Rngs(0)), torch.nn.Identity(3, unused=True), array(2, 3))
