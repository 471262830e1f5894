"""Gradient transformations with PyTorch's update rules for matrices, and for tables that rows are looked up in.

Each is one link of an `optax.chain`; `optax.scale_by_learning_rate` comes last.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class MuonState(NamedTuple):
    """The momentum buffers."""

    momentum: Any


def orthogonalized(matrix: jax.Array, coefficients: tuple[float, float, float], steps: int, eps: float) -> jax.Array:
    """About `U @ V.T` of a matrix `U @ S @ V.T`, by Newton-Schulz iterations in bfloat16."""

    def rounded(x: jax.Array) -> jax.Array:
        # XLA skips rounding to bfloat16 and back inside of a compiled function, but not this one
        return jax.lax.reduce_precision(x.astype(jnp.float32), exponent_bits=8, mantissa_bits=7).astype(jnp.bfloat16)

    def product(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.matmul(x, y, preferred_element_type=jnp.float32)

    a, b, c = coefficients
    x = rounded(matrix.T if matrix.shape[0] > matrix.shape[1] else matrix)
    x = rounded(x / jnp.maximum(rounded(jnp.linalg.norm(x.astype(jnp.float32))), eps).astype(jnp.float32))
    for _ in range(steps):
        gram = rounded(product(x, x.T))
        update = rounded(b * gram.astype(jnp.float32) + c * product(gram, gram))
        x = rounded(a * x.astype(jnp.float32) + product(update, x))
    return (x.T if matrix.shape[0] > matrix.shape[1] else x).astype(matrix.dtype)


def scale_by_muon(
    momentum: float = 0.95,
    nesterov: bool = True,
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
    eps: float = 1e-7,
    ns_steps: int = 5,
    adjust_lr_fn: str | None = None,
) -> optax.GradientTransformation:
    """`torch.optim.Muon`: momentum of matrices, orthogonalised in bfloat16, and scaled by their shape.

    A parameter named `kernel` has inputs by outputs, any other has PyTorch's outputs by inputs. optax.contrib.muon
    corrects the bias of its momentum, and orthogonalises in the parameters' dtype.
    """

    def init(params: Any) -> MuonState:
        return MuonState(jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: MuonState, params: Any = None) -> tuple[Any, MuonState]:
        buffers = jax.tree.map(lambda m, g: m + (1 - momentum) * (g - m), state.momentum, updates)

        def leaf(path: tuple[Any, ...], g: jax.Array, m: jax.Array) -> jax.Array:
            turned = any(getattr(key, "key", None) == "kernel" for key in path)
            direction = g + momentum * (m - g) if nesterov else m
            direction = direction.T if turned else direction
            outputs, inputs = direction.shape
            scale = max(1, outputs / inputs) ** 0.5
            if adjust_lr_fn == "match_rms_adamw":
                scale = 0.2 * max(outputs, inputs) ** 0.5
            direction = scale * orthogonalized(direction, ns_coefficients, ns_steps, eps)
            return direction.T if turned else direction

        return jax.tree.map_with_path(leaf, updates, buffers), MuonState(buffers)

    return optax.GradientTransformation(init, update)


class SparseAdamState(NamedTuple):
    """The number of updates, and the moments."""

    count: jax.Array
    mu: Any
    nu: Any


def scale_by_sparse_adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> optax.GradientTransformation:
    """`torch.optim.SparseAdam`: Adam of the rows that have a gradient; the others and their moments stay."""

    def looked_up(g: jax.Array) -> jax.Array:
        return jnp.any(g != 0, axis=tuple(range(1, g.ndim)), keepdims=True)

    def init(params: Any) -> SparseAdamState:
        mu, nu = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return SparseAdamState(jnp.zeros([], jnp.int32), mu, nu)

    def update(updates: Any, state: SparseAdamState, params: Any = None) -> tuple[Any, SparseAdamState]:
        count = state.count + 1
        mu = jax.tree.map(lambda m, g: jnp.where(looked_up(g), m + (1 - b1) * (g - m), m), state.mu, updates)
        nu = jax.tree.map(lambda v, g: jnp.where(looked_up(g), v + (1 - b2) * (g * g - v), v), state.nu, updates)
        scale = jnp.sqrt(1 - b2**count) / (1 - b1**count)

        def leaf(g: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            return jnp.where(looked_up(g), scale * m / (jnp.sqrt(v) + eps), 0).astype(g.dtype)

        return jax.tree.map(leaf, updates, mu, nu), SparseAdamState(count, mu, nu)

    return optax.GradientTransformation(init, update)
