"""Modules as functions of their parameters: dicts of arrays under PyTorch's names, in its order and its layouts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state

from .side_by_side import Sides, randomized, sides

SOURCE = """\
import copy
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value, jacrev, stack_module_state, vmap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.second = nn.Linear(4, 4)
        self.conv = nn.Conv1d(2, 2, 3, padding=1)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        self.first = nn.Linear(4, 4, bias=False)
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, x, gain=1.0):
        return self.first(torch.tanh(self.second(self.drop(self.norm(self.conv(x)))))) * self.scale * gain


def adapted(model: Net, x: torch.Tensor, y: torch.Tensor):
    def loss(params, x, y):
        return F.mse_loss(functional_call(model, params, (x,)), y)

    params = dict(model.named_parameters())
    for _ in range(2):
        grads, value = grad_and_value(loss)(params, x, y)
        params = {name: p - 0.1 * grads[name] for name, p in params.items()}
    return [p for p in params.values()]


def per_sample(model: Net, x: torch.Tensor, y: torch.Tensor):
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def loss(params, buffers, x, y):
        out = functional_call(model, (params, buffers), (x.unsqueeze(0),), {"gain": 0.5})
        return F.mse_loss(out, y.unsqueeze(0))

    grads = vmap(grad(loss), in_dims=(None, None, 0, 0))(params, buffers, x, y)
    return [g.flatten(1).norm(dim=1) for g in grads.values()]


def in_loop(model: Net, x: torch.Tensor, y: torch.Tensor):
    params = {}
    for name, p in model.named_parameters():
        params[name] = p.detach() * torch.arange(p.shape[0]).reshape(-1, *[1] * (p.dim() - 1))
    return [functional_call(model, params, x), functional_call(model, {"first.weight": y[0].T @ y[0]}, x)]


def tangents(model: Net, x: torch.Tensor, y: torch.Tensor):
    params = dict(model.named_parameters())
    rows = jacrev(lambda p: functional_call(model, p, (x,)).sum((0, 1)))(params)
    return [row.flatten(1) for row in rows.values()]


def ensemble(model: Net, x: torch.Tensor, y: torch.Tensor):
    params, buffers = stack_module_state([model, model])
    base = copy.deepcopy(model).to("meta")
    return [vmap(lambda p, b: functional_call(base, (p, b), (x,)))(params, buffers)]
"""


@pytest.fixture(scope="module")
def both() -> Sides:
    pair = sides(SOURCE, "functional_call")
    assert not pair.gaps()
    return pair


def modules(both: Sides) -> tuple[torch.nn.Module, nnx.Module]:
    torch.manual_seed(0)
    source = randomized(both.torch.Net())
    module = both.jax.Net(rngs=nnx.Rngs(0))
    load_torch_state(module, source.state_dict())
    source.scale = source.scale.double() * 0 + 2.0
    return source.eval(), module


def arguments() -> list[Any]:
    numbers = np.random.default_rng(0)
    return [numbers.normal(size=(3, 2, 4)), numbers.normal(size=(3, 2, 4))]


@pytest.mark.parametrize("name", ["adapted", "per_sample", "in_loop", "tangents", "ensemble"])
def test_a_function_of_a_modules_parameters_is_the_same(both: Sides, name: str) -> None:
    given = arguments()
    with jax.enable_x64(True):
        source, module = modules(both)
        module.eval()
        wanted = getattr(both.torch, name)(source, *map(torch.tensor, given))
        value = [np.asarray(array) for array in getattr(both.jax, name)(module, *map(jnp.asarray, given))]
    assert len(wanted) == len(value)
    for one, other in zip(wanted, value, strict=True):
        np.testing.assert_allclose(other, one.detach().numpy(), rtol=1e-9, atol=1e-10)


def test_the_module_keeps_its_own_parameters(both: Sides) -> None:
    _, module = modules(both)
    module.eval()
    before = np.asarray(module.first.kernel[...])
    both.jax.in_loop(module, *map(jnp.asarray, arguments()))
    np.testing.assert_array_equal(module.first.kernel[...], before)


def test_a_call_that_would_lose_state_fails(both: Sides) -> None:
    _, module = modules(both)
    module.train()
    with pytest.raises(ValueError, match="call eval"):
        both.jax.functional_call(module, {}, jnp.ones((3, 2, 4)))


def test_a_name_that_the_module_has_not_fails(both: Sides) -> None:
    _, module = modules(both)
    with pytest.raises(KeyError, match="no_such"):
        both.jax.functional_call(module, {"no_such.weight": jnp.ones(2)}, jnp.ones((3, 2, 4)))


def test_a_variable_which_has_another_layout_fails(both: Sides) -> None:
    _, module = modules(both)
    with pytest.raises(TypeError, match="named_arrays"):
        both.jax.functional_call(module, {"first.weight": module.first.kernel}, jnp.ones((3, 2, 4)))


def test_other_uses_of_names_stay_those_of_variables() -> None:
    code = convert(SOURCE + "\n\ndef zero(model: Net):\n    for name, p in model.named_parameters():\n"
                   "        if 'norm' in name:\n            p.data.zero_()\n").code  # fmt: skip
    assert code.count("torch_name(model, path)") == 1, code


def test_a_step_that_adapts_inside_is_passed_nothing_of_its_own() -> None:
    text = """\
import torch
from torch import nn
from torch.func import functional_call, grad


def inner(params, model, x):
    return functional_call(model, params, (x,)).pow(2).mean()


model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    total = 0.0
    for task in range(2):
        x = torch.full((4, 2), float(task))
        params = dict(model.named_parameters())
        grads = grad(inner)(params, model, x)
        params = {k: p - 0.1 * grads[k] for k, p in params.items()}
        total = total + inner(params, model, x)
    total.backward()
    optimizer.step()
"""
    done = convert(text)
    assert not done.gaps and "train_step(model, optimizer)" in done.code, (done.gaps, done.code)
