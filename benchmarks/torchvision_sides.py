"""Runs a model in PyTorch and its conversion in JAX, in float64, with the same weights and input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from torch.nn import functional

from t2j_lsp.weights import load_torch_state, torch_layout, torch_names, torch_state

from .observed import Arrays, Distance, Observed, distance


@dataclass(frozen=True)
class Reference:
    """What PyTorch computed, and what it computed it from."""

    state: dict[str, Any]
    x: np.ndarray[Any, Any]
    observed: Observed


def _cotangent(index: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng([3, index]).normal(size=shape)


def _named(leaves: list[Any]) -> Arrays:
    return {f"output {i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}


def _torch_leaves(output: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(output) if leaf is not None]


def _spread(model: torch.nn.Module) -> None:
    """Moves every parameter and statistic off its initial value: fresh scales of 1 and biases of 0 hide errors."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                noise = torch.rand(value.shape, generator=generator, dtype=value.dtype)
                value.add_(0.5 * noise if name.endswith("running_var") else 0.2 * noise - 0.1)


@contextmanager
def hardsigmoid_in_float64() -> Iterator[None]:
    """Torch's own hardsigmoid multiplies its gradient by a float32 constant, 3e-8 off 1/6, in float64 too.

    The same function from relu6 has no such constant, and is the reference here.
    """
    original = functional.hardsigmoid
    functional.hardsigmoid = lambda input, inplace=False: functional.relu6(input + 3.0) / 6.0
    try:
        yield
    finally:
        functional.hardsigmoid = original


def run_torch(build: Callable[..., Any], shape: tuple[int, ...]) -> Reference:
    """The model that ``build(p=0)`` makes, observed on random input of ``shape``.

    Raises ValueError where all activations are dead, so that a comparison would say nothing.
    """
    # JAX with 64 bits divides integers in float64, PyTorch in its default dtype.
    torch.set_default_dtype(torch.float64)
    try:
        with hardsigmoid_in_float64():
            return _run_torch(build, shape)
    finally:
        torch.set_default_dtype(torch.float32)


def _run_torch(build: Callable[..., Any], shape: tuple[int, ...]) -> Reference:
    torch.manual_seed(0)
    model: torch.nn.Module = build(p=0.0).double()
    _spread(model)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    x = np.random.default_rng(2).normal(size=shape)
    model.eval()
    with torch.no_grad():
        eval_leaves = _torch_leaves(model(torch.from_numpy(x)))
    model.train()
    tensor = torch.from_numpy(x).requires_grad_(True)
    leaves = _torch_leaves(model(tensor))
    torch.autograd.backward(leaves, [torch.from_numpy(_cotangent(i, tuple(v.shape))) for i, v in enumerate(leaves)])
    if tensor.grad is None or not tensor.grad.any():
        raise ValueError("the output does not depend on the input: another width or input size is needed")
    observed = Observed(
        _named([leaf.detach() for leaf in eval_leaves]),
        _named([leaf.detach() for leaf in leaves]),
        {
            name: np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
            for name, parameter in model.named_parameters()
        },
        {"input": tensor.grad.numpy()},
        {
            name: value.numpy().copy()
            for name, value in model.named_buffers()
            if name in state and not name.endswith("num_batches_tracked")
        },
    )
    return Reference(state, x, observed)


def make(build: Callable[..., Any], p: float) -> nnx.Module:
    """The converted model. The conversion gives ``rngs`` to functions that make modules."""
    arguments: dict[str, Any] = {"p": p}
    if "rngs" in inspect.signature(build).parameters:
        arguments["rngs"] = nnx.Rngs(0)
    model: nnx.Module = build(**arguments)
    return model


def run_jax(build: Callable[..., Any], reference: Reference) -> tuple[Observed, Distance]:
    """The converted model under ``jax.jit``, with the reference's weights and input.

    The second result is how far the eval output is from the reference's when run eagerly.
    """
    with jax.enable_x64(True):
        return _run_jax(build, reference)


def run_forward(build: Callable[..., Any], reference: Reference) -> Distance:
    """How far the eval output is from the reference's when run eagerly: the quick look, without gradients."""
    with jax.enable_x64(True):
        model = load_torch_state(make(build, 0.0), reference.state)
        model.eval()
        return distance(reference.observed.eval_outputs, _named(jax.tree.leaves(model(jnp.asarray(reference.x)))))


def _run_jax(build: Callable[..., Any], reference: Reference) -> tuple[Observed, Distance]:
    model = load_torch_state(make(build, 0.0), reference.state)
    x = jnp.asarray(reference.x)
    model.eval()
    eager = _named(jax.tree.leaves(model(x)))
    eval_outputs = _named(jax.tree.leaves(nnx.jit(lambda model, x: model(x))(model, x)))
    model.train()
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)

    def loss(params: Any, x: jax.Array) -> tuple[jax.Array, Any]:
        trained = nnx.merge(graphdef, params, rest, copy=True)
        leaves = jax.tree.leaves(trained(x))
        total = sum((jnp.sum(v * _cotangent(i, v.shape)) for i, v in enumerate(leaves)), start=jnp.zeros(()))
        return total, (leaves, nnx.state(trained, nnx.Not(nnx.Param)))

    gradients, (leaves, after) = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))(params, x)
    # PyTorch lists a tied parameter under its first name only.
    listed = reference.observed.parameter_gradients
    parameter_gradients = torch_layout(model, gradients[0])
    buffers = [name for name, e in torch_names(model).items() if e.kind == "buffer" and e.variables]
    nnx.update(model, after)
    state = torch_state(model)
    observed = Observed(
        eval_outputs,
        _named(leaves),
        {name: np.asarray(value) for name, value in parameter_gradients.items() if name in listed},
        {"input": np.asarray(gradients[1])},
        {name: state[name] for name in buffers},
    )
    return observed, distance(reference.observed.eval_outputs, eager)


def trace_with_dropout(build: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """Traces a train step of a model whose dropout rates are not 0: its random state must be there and may change."""
    model = make(build, 0.3)
    model.train()
    nnx.eval_shape(lambda model, x: model(x), model, jnp.zeros(shape))
