"""Compares a helper with the PyTorch call it stands for: outputs, gradients, buffers, fresh parameters.

Everything runs in float64, where a right translation agrees to about 1e-14 of an array's scale. Parameters and buffers
are made random and copied from PyTorch first: fresh scales of 1 and biases of 0 hide errors. Gradients are those of
`sum(output * cotangent)` with a random cotangent, for every parameter and every floating-point input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from t2j_lsp.translate.source.helpers import helpers

Change = Callable[[str], str]
"""What makes a helper's text into a special form of it."""

TOLERANCE = 1e-11  # of the largest absolute value in the expected array (or of 1, where that is smaller)


def array(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """A float64 array of uniform values, the same in every run."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def randomize(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Casts a PyTorch module to float64 and fills parameters and buffers with random values (variances positive)."""
    module.double()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                low = 0.5 if name.endswith("running_var") else -1.0
                value.copy_(torch.from_numpy(rng.uniform(low, 1.5, tuple(value.shape))))
    return module


def torch_names(module: nnx.Module) -> dict[str, tuple[nnx.Variable, Callable[[Any], Any], Callable[[Any], Any]]]:
    """Every parameter and buffer: PyTorch's name -> (variable, layout from PyTorch, layout to PyTorch)."""
    result = {}
    for path, owner in nnx.iter_modules(module):
        parts = [str(p) for p in path]
        for name, variable in vars(owner).items():
            if not isinstance(variable, nnx.Variable) or isinstance(variable, nnx.RngState):
                continue
            torch_name, from_torch, to_torch = _entry(owner, name)
            prefix = [p for i, p in enumerate(parts) if not (p == "layers" and _is_sequential(module, parts[:i]))]
            result[".".join([*prefix, torch_name])] = (variable, from_torch, to_torch)
    return result


def _is_sequential(module: Any, parts: list[str]) -> bool:
    for part in parts:
        module = getattr(module, part)
    return isinstance(module, nnx.Sequential)


def _entry(owner: nnx.Module, name: str) -> tuple[str, Callable[[Any], Any], Callable[[Any], Any]]:
    def same(x: Any) -> Any:
        return x

    if isinstance(owner, nnx.Linear) and name == "kernel":
        return "weight", lambda x: x.T, lambda x: x.T
    if isinstance(owner, nnx.Conv | nnx.ConvTranspose) and name == "kernel":
        return (
            "weight",
            lambda x: np.moveaxis(x, (0, 1), (-1, -2)),
            lambda x: np.moveaxis(x, (-1, -2), (0, 1)),
        )
    if isinstance(owner, nnx.Embed) and name == "embedding":
        return "weight", same, same
    norms = (nnx.BatchNorm, nnx.LayerNorm, nnx.GroupNorm, nnx.InstanceNorm, nnx.RMSNorm)
    if isinstance(owner, norms):
        return {"scale": "weight", "mean": "running_mean", "var": "running_var"}.get(name, name), same, same
    return name, same, same


def copy_state(source: torch.nn.Module, target: nnx.Module) -> None:
    """Copies every parameter and buffer; fails on names or shapes that differ (`num_batches_tracked` may be absent)."""
    names = torch_names(target)
    state = {k: v.detach().numpy().copy() for k, v in source.state_dict().items()}
    state = {k: v for k, v in state.items() if k in names or not k.endswith("num_batches_tracked")}
    assert set(names) == set(state), (sorted(names), sorted(state))
    for name, (variable, from_torch, _) in names.items():
        value = from_torch(state[name])
        assert variable.shape == value.shape, (name, variable.shape, value.shape)
        variable.set_value(jnp.asarray(value))


def close(got: Any, want: Any, what: str, tolerance: float = TOLERANCE) -> None:
    """Same shape, same kind of dtype, same NaNs, and values within `tolerance` of the expected array's scale."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, PyTorch has {want.shape}"
    assert got.dtype.kind == want.dtype.kind, f"{what}: dtype {got.dtype}, PyTorch has {want.dtype}"
    finite = want[np.isfinite(want)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=what)


def same_function(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Any,
    jit: bool = False,
    gradients: bool = True,
    tolerance: float = TOLERANCE,
) -> None:
    """Compares two pure functions of the same positional inputs (numpy arrays are converted, the rest is passed on)."""
    tensors = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in inputs]
    wanted_inputs = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    for i in wanted_inputs:
        tensors[i].requires_grad_(gradients)
    want = _torch_leaves(reference(*tensors))
    cotangents = _cotangents(want)

    def loss(floats: list[jax.Array]) -> tuple[jax.Array, Any]:
        arguments = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs]
        for i, x in zip(wanted_inputs, floats, strict=True):
            arguments[i] = x
        leaves = jax.tree.leaves(function(*arguments))
        return _weighted_sum(leaves, cotangents), leaves

    run = jax.value_and_grad(loss, has_aux=True) if gradients and wanted_inputs else lambda x: (loss(x), None)
    (_, got), grads = (jax.jit(run) if jit else run)([jnp.asarray(inputs[i]) for i in wanted_inputs])
    _compare_leaves(got, want, tolerance)
    if gradients and wanted_inputs:
        _backward(want, cotangents)
        for i, grad in zip(wanted_inputs, grads, strict=True):
            close(grad, _grad(tensors[i]), f"gradient of input {i}", tolerance)


def same_module(
    module: nnx.Module,
    reference: torch.nn.Module,
    *inputs: np.ndarray,
    train: bool = True,
    jit: bool = False,
    copy: bool = True,
    tolerance: float = TOLERANCE,
) -> None:
    """Compares one forward and backward pass of two modules, and their buffers afterwards.

    With `copy` the PyTorch module is randomized and its state is copied first; without, the two go on from the state
    that an earlier call left (so that a second step can be compared).
    """
    if copy:
        copy_state(randomize(reference), module)
    reference.zero_grad()
    for m in (module, reference):
        m.train() if train else m.eval()
    tensors = [torch.from_numpy(x.copy()) for x in inputs]
    floats = [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]
    for i in floats:
        tensors[i].requires_grad_(True)
    want = _torch_leaves(reference(*tensors))
    cotangents = _cotangents(want)
    graphdef, params, rest = nnx.split(module, nnx.Param, ...)

    def loss(params: nnx.State, arrays: list[jax.Array]) -> tuple[jax.Array, Any]:
        model = nnx.merge(graphdef, params, rest, copy=True)
        arguments: list[Any] = [jnp.asarray(x) for x in inputs]
        for i, x in zip(floats, arrays, strict=True):
            arguments[i] = x
        leaves = jax.tree.leaves(model(*arguments))
        return _weighted_sum(leaves, cotangents), (leaves, nnx.state(model, nnx.Not(nnx.Param)))

    run = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    arrays = [jnp.asarray(inputs[i]) for i in floats]
    (_, (got, buffers)), (param_grads, input_grads) = (jax.jit(run) if jit else run)(params, arrays)
    _compare_leaves(got, want, tolerance)
    _backward(want, cotangents)
    for i, grad in zip(floats, input_grads, strict=True):
        close(grad, _grad(tensors[i]), f"gradient of input {i}", tolerance)
    grads = torch_names(nnx.merge(graphdef, param_grads, rest))
    for name, parameter in reference.named_parameters():
        variable, _, to_torch = grads[name]
        close(to_torch(np.asarray(variable[...])), _grad(parameter), f"gradient of {name}", tolerance)
    nnx.update(module, buffers)
    names = torch_names(module)
    for name, buffer in reference.named_buffers():
        if name in names and name in reference.state_dict():
            close(names[name][0][...], buffer.numpy(), f"buffer {name}", tolerance)


def same_distribution(module: nnx.Module, reference: torch.nn.Module) -> None:
    """Compares mean, standard deviation and range of every fresh parameter (of a big layer: some 10,000 numbers).

    The tolerance is five standard errors of the number of values; constants must agree exactly.
    """
    names = torch_names(module)
    for name, parameter in reference.named_parameters():
        want = parameter.detach().numpy()
        got = np.asarray(names[name][0][...])
        spread = float(want.std())
        if spread == 0.0:
            np.testing.assert_array_equal(names[name][2](got), want, err_msg=name)
            continue
        allowed = 5 * spread * (2 / want.size) ** 0.5
        assert abs(got.mean() - want.mean()) < allowed, (name, got.mean(), want.mean())
        assert abs(got.std() - spread) < allowed, (name, got.std(), spread)
        if np.abs(want).max() < 1.8 * spread:  # uniform: the bounds are sharp
            assert abs(np.abs(got).max() - np.abs(want).max()) < allowed, name


def _torch_leaves(value: Any) -> list[torch.Tensor]:
    return [x for x in torch.utils._pytree.tree_leaves(value) if x is not None]


def _cotangents(leaves: list[torch.Tensor]) -> list[np.ndarray]:
    return [array(*x.shape, seed=7 + i) for i, x in enumerate(leaves)]


def _weighted_sum(leaves: list[Any], cotangents: list[np.ndarray]) -> jax.Array:
    pairs = zip(leaves, cotangents, strict=True)
    return sum((jnp.sum(x * c) for x, c in pairs if jnp.issubdtype(x.dtype, jnp.floating)), start=jnp.zeros(()))


def _backward(leaves: list[torch.Tensor], cotangents: list[np.ndarray]) -> None:
    pairs = [(x, torch.from_numpy(c)) for x, c in zip(leaves, cotangents, strict=True) if x.requires_grad]
    if pairs:
        torch.autograd.backward([x for x, _ in pairs], [c for _, c in pairs])


def _grad(tensor: torch.Tensor) -> np.ndarray:
    return (torch.zeros_like(tensor) if tensor.grad is None else tensor.grad).detach().numpy()


def _compare_leaves(got: list[Any], want: list[torch.Tensor], tolerance: float) -> None:
    assert len(got) == len(want), f"{len(got)} outputs, PyTorch has {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        close(g, w.detach().numpy(), f"output {i}", tolerance)


def changed_helper(module: Any, name: str, change: Change) -> Any:
    """A helper of a module of helpers in a special form, as it is written into a file: its text, changed."""
    text = change(helpers()[name].text)
    assert text != helpers()[name].text
    names = dict(vars(module))
    exec(text, names)
    return names[name]
