"""Converts a source text and runs both sides on the same weights and inputs, in float64.

Parameters and buffers of the PyTorch module are made random first (fresh scales of 1 and biases of 0 hide errors) and
loaded with ``load_torch_state``. Compared are the outputs, the gradients of every floating input and of every
parameter, and the state after the call. Gradients are those of ``sum(output * cotangent)`` with random cotangents.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from t2j_lsp.contract import Options, Translation
from t2j_lsp.translate import translate
from t2j_lsp.weights import load_torch_state, torch_layout, torch_state

TOLERANCE = 1e-10  # of the largest absolute value in PyTorch's array, or of 1

Arguments = Sequence[Any]


@dataclass
class Sides:
    """A source and its conversion, both executed."""

    translation: Translation
    torch: ModuleType
    jax: ModuleType

    def gaps(self) -> list[str]:
        """Each gap as ``name: reason``."""
        return [f"{gap.name}: {gap.reason}" for gap in self.translation.gaps]


def sides(source: str, name: str) -> Sides:
    """Converts ``source`` and executes it and its conversion as modules."""
    translation = translate(source, Options(x64=True))
    return Sides(translation, _execute(source, f"{name}_torch"), _execute(translation.code, f"{name}_jax"))


def _execute(code: str, name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up
    exec(compile(code, f"<{name}>", "exec"), module.__dict__)
    return module


def randomized(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """``module`` in float64, with random parameters and float buffers; running variances are positive."""
    module.double()
    rng = np.random.default_rng(seed)
    tied: set[int] = set()
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if value.is_floating_point() and id(value) not in tied and _learnt(module, name):
                tied.add(id(value))
                low = 0.5 if name.endswith("running_var") else -1.0
                value.copy_(torch.as_tensor(rng.uniform(low, 1.5, tuple(value.shape)) * _spread(value)))
    return module


def _learnt(module: torch.nn.Module, name: str) -> bool:
    """Parameters and running statistics; other buffers are constants of the model (masks, frequencies)."""
    return name in dict(module.named_parameters()) or "running_" in name


def _spread(value: torch.Tensor) -> float:
    """Matrices shrink with their width, so that deep models keep numbers of ordinary size."""
    return 1.0 if value.ndim < 2 else 1.5 / max(1.0, float(value[0].numel())) ** 0.5


@dataclass
class Run:
    """What one side showed: outputs in order, gradients by name, the state after the call."""

    outputs: list[np.ndarray]
    gradients: dict[str, np.ndarray] = field(default_factory=dict)
    state: dict[str, np.ndarray] = field(default_factory=dict)


def run_torch(
    module: torch.nn.Module, inputs: Arguments, keywords: Mapping[str, Any], train: bool, constant: Collection[int] = ()
) -> Run:
    """Runs PyTorch's side; the module's own state is changed as the call changes it.

    The inputs at the places ``constant`` get no gradient.
    """
    module.train(train)
    module.zero_grad()
    given = [_tensor(x, i not in constant) for i, x in enumerate(inputs)]
    named = {name: _tensor(x) for name, x in keywords.items()}
    with torch.enable_grad():  # the copies may be written into, the leaves of a graph may not
        result = module(*map(_copy, given), **{name: _copy(x) for name, x in named.items()})
        leaves = [x for x in _leaves(result) if isinstance(x, torch.Tensor)]
    pairs = [(x, torch.from_numpy(c)) for x, c in zip(leaves, _cotangents(leaves), strict=True) if x.requires_grad]
    if pairs:
        torch.autograd.backward([x for x, _ in pairs], [c for _, c in pairs])
    gradients = {name: _grad(p) for name, p in module.named_parameters(remove_duplicate=False)}
    tensors = {**{f"input {i}": x for i, x in enumerate(given)}, **{f"input {n}": x for n, x in named.items()}}
    gradients |= {name: _grad(x) for name, x in tensors.items() if isinstance(x, torch.Tensor) and x.requires_grad}
    state = {name: value.detach().numpy().copy() for name, value in module.state_dict().items()}
    return Run([x.detach().numpy() for x in leaves], gradients, state)


def run_jax(module: nnx.Module, inputs: Arguments, keywords: Mapping[str, Any], train: bool, jit: bool) -> Run:
    """Runs JAX's side the same way; ``jit`` puts the whole step, gradients included, under jax.jit."""
    module.train() if train else module.eval()
    graphdef, params, rest = nnx.split(module, nnx.Param, ...)
    arguments = {**{f"input {i}": x for i, x in enumerate(inputs)}, **{f"input {n}": x for n, x in keywords.items()}}
    arrays = {name: jnp.asarray(x) for name, x in arguments.items() if isinstance(x, np.ndarray)}
    floats = {name: x for name, x in arrays.items() if jnp.issubdtype(x.dtype, jnp.floating)}
    static = {name: x for name, x in arguments.items() if name not in arrays}
    others = {name: x for name, x in arrays.items() if name not in floats}

    def loss(params: Any, floats: dict[str, jax.Array], rest: Any, others: dict[str, jax.Array]) -> Any:
        model = nnx.merge(graphdef, params, rest, copy=True)
        values = {**static, **floats, **others}
        given = [values[f"input {i}"] for i in range(len(inputs))]
        leaves = jax.tree.leaves(model(*given, **{n: values[f"input {n}"] for n in keywords}))
        leaves = [jnp.asarray(x) for x in leaves if hasattr(x, "dtype")]
        pairs = zip(leaves, _cotangents(leaves), strict=True)
        total = sum((jnp.sum(x * c) for x, c in pairs if jnp.issubdtype(x.dtype, jnp.floating)), start=jnp.zeros(()))
        return total, (leaves, nnx.state(model, nnx.Not(nnx.Param)))

    step = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    (_, (leaves, after)), (grads, input_grads) = (jax.jit(step) if jit else step)(params, floats, rest, others)
    gradients = {name: np.asarray(x) for name, x in torch_layout(module, grads).items()}
    gradients |= {name: np.asarray(x) for name, x in input_grads.items()}
    nnx.update(module, after)
    return Run([np.asarray(x) for x in leaves], gradients, torch_state(module))


def compare(
    reference: torch.nn.Module,
    module: nnx.Module,
    inputs: Arguments,
    keywords: Mapping[str, Any] | None = None,
    *,
    train: bool = False,
    jit: bool = False,
    tolerance: float = TOLERANCE,
    constant: Collection[int] = (),
) -> None:
    """Asserts that both modules do the same; the reference's state is loaded into ``module`` first.

    The gradients of the inputs at the places ``constant`` aren't compared: PyTorch has none.
    """
    load_torch_state(module, reference.state_dict())
    got = run_jax(module, inputs, keywords or {}, train, jit)
    for index in constant:
        got.gradients.pop(f"input {index}", None)
    want = run_torch(reference, inputs, keywords or {}, train, constant)
    assert len(got.outputs) == len(want.outputs), f"{len(got.outputs)} outputs, PyTorch has {len(want.outputs)}"
    for index, (g, w) in enumerate(zip(got.outputs, want.outputs, strict=True)):
        _close(g, w, f"output {index}", tolerance)
    assert set(want.gradients) == set(got.gradients)
    for name, w in want.gradients.items():
        _close(got.gradients[name], w, f"gradient of {name}", tolerance)
    for name, w in want.state.items():
        if not name.endswith("num_batches_tracked"):
            _close(got.state[name], w, f"state {name}", tolerance)


def _close(got: np.ndarray, want: np.ndarray, what: str, tolerance: float) -> None:
    assert got.shape == want.shape, f"{what}: shape {got.shape}, PyTorch has {want.shape}"
    assert got.dtype.kind == want.dtype.kind, f"{what}: dtype {got.dtype}, PyTorch has {want.dtype}"
    if not want.size:
        return
    assert np.isfinite(want).all(), f"{what}: PyTorch's own value is not finite"
    scale = max(1.0, float(np.abs(want).max()))
    error = float(np.abs(got.astype(want.dtype) - want).max()) if want.dtype != bool else float((got != want).any())
    assert error <= tolerance * scale, f"{what}: off by {error:.3g} at scale {scale:.3g}"


def _leaves(value: Any) -> list[Any]:
    """What a call returned, item by item; dicts in the order of their sorted keys, as jax.tree.leaves has them."""
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in _leaves(value[key])]
    if isinstance(value, list | tuple):
        return [x for item in value for x in _leaves(item)]
    return torch.utils._pytree.tree_leaves(value)


def _tensor(value: Any, gradient: bool = True) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    tensor = torch.from_numpy(value.copy())
    return tensor.requires_grad_(gradient and tensor.is_floating_point())


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _grad(tensor: torch.Tensor) -> np.ndarray:
    return (torch.zeros_like(tensor) if tensor.grad is None else tensor.grad).detach().numpy()


def _cotangents(leaves: Sequence[Any]) -> list[np.ndarray]:
    return [np.random.default_rng([7, i]).uniform(-1, 1, tuple(x.shape)) for i, x in enumerate(leaves)]
