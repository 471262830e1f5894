"""Gradients of what an episode kept, which go back through each step that was made, as PyTorch's graph does."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def recorded(function: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any, Any]]:
    """Compiles `function(module, ...)`, which returns what gradients are taken of, and what else is wanted.

    The compiled function also returns by what gradients go back to the module's parameters, for `pull_back`: it is
    called step by step, and no gradient has to be traced through the episode.
    """

    @nnx.jit(graph=False)
    def compiled(module: nnx.Module, *inputs: Any, **rngs: nnx.Rngs) -> tuple[Any, Any, Any]:
        structure, parameters, state = nnx.split(module, nnx.Param, ...)
        streams, counts = nnx.split(rngs)

        def of_parameters(parameters: nnx.State) -> tuple[Any, Any]:
            merged = nnx.merge(structure, parameters, state, copy=True)
            drawn = nnx.merge(streams, counts, copy=True)
            kept, others = function(merged, *inputs, **drawn)
            return kept, (others, nnx.state(merged, nnx.Not(nnx.Param)), nnx.state(drawn))

        kept, pullback, (others, changed, drawn) = jax.vjp(of_parameters, parameters, has_aux=True)
        nnx.update(module, changed)
        nnx.update(rngs, drawn)
        return kept, others, pullback

    return compiled


def stacked(values: Sequence[Any]) -> Any:
    """The arrays of all steps in one, or in one for each part of a tuple, with the steps in front."""
    return jax.tree.map(lambda *parts: np.stack(parts), *values)


def pull_back(pullbacks: Sequence[Any], cotangents: Any) -> nnx.State:
    """The gradients of the parameters, from those of what the steps of an episode kept, which are `stacked`."""
    parts, structure = jax.tree.flatten(jax.tree.map(np.asarray, cotangents))
    grads = None
    for pullback, *parts_of_step in zip(pullbacks, *parts, strict=True):
        cotangent = jax.tree.unflatten(structure, parts_of_step)
        grads = _added(grads, pullback, cotangent)
    return grads


@jax.jit
def _added(grads: nnx.State | None, pullback: Any, cotangent: Any) -> nnx.State:
    (new,) = pullback(cotangent)
    return new if grads is None else jax.tree.map(jnp.add, grads, new)
