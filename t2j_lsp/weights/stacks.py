"""Layers that are stacked: one module has the variables of n alike ones, each with a first axis of length n.

``nnx.vmap`` of a function that makes a layer gives such a module, ``nnx.scan`` runs it. It says of itself how many
layers it holds, in an attribute that conversions set: ``self.blocks.stacked_layers = depth``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

COUNT = "stacked_layers"
"""The attribute with the number of layers."""

Index = tuple[int, ...]
"""Which layer of a stack, and which of a stack inside that."""


@dataclass(frozen=True, eq=False)
class StackedLayer:
    """What one layer of a stack has of a variable, read and replaced as a variable is."""

    variable: nnx.Variable[Any]
    index: Index

    def get_value(self) -> Any:
        """A part of the variable's value; a view where that is no tracer."""
        return part_of(self, self.variable.get_value())

    def set_value(self, value: Any) -> None:
        """Replaces the part. The whole takes the dtype of ``value``."""
        old = self.variable.get_value()
        if isinstance(old, jax.core.Tracer) or isinstance(value, jax.core.Tracer):
            self.variable.set_value(jnp.asarray(old, value.dtype).at[self.index].set(value))
            return
        # JAX would compile a program for each layer.
        whole = np.array(old, dtype=value.dtype)
        whole[self.index] = np.asarray(value)
        self.variable.set_value(jnp.asarray(whole))


def part_of(variable: Any, whole: Any) -> Any:
    """The part of ``whole``, an array in the place of a variable's value, that belongs to one layer of a stack."""
    if not isinstance(variable, StackedLayer):
        return whole
    if isinstance(whole, jax.ShapeDtypeStruct):
        shape = whole.shape[len(variable.index) :]
        return jax.ShapeDtypeStruct(shape, whole.dtype)  # type: ignore[no-untyped-call]
    return whole[variable.index] if isinstance(whole, jax.core.Tracer) else np.asarray(whole)[variable.index]


def whole_of(variable: Any) -> Any:
    """The variable that holds this one: itself, but for that of a layer of a stack."""
    return variable.variable if isinstance(variable, StackedLayer) else variable


def stacked_layers(module: Any, index: Index) -> int | None:
    """How many layers a module is a stack of; None for any other. ``index`` is its place in stacks around it."""
    count = vars(module).get(COUNT) if isinstance(module, nnx.Module) else None
    if not isinstance(count, int):
        return None
    place = len(index)
    shapes = [v.get_value().shape for _, v in nnx.iter_graph(module) if isinstance(v, nnx.Variable)]
    return count if all(len(s) > place and s[place] == count for s in shapes) else None


def restacked(parts: list[tuple[StackedLayer, Any]]) -> Any:
    """The whole of a variable, of the parts of all layers."""
    whole = np.shape(parts[0][0].variable.get_value())
    dtype = jnp.result_type(*(part.dtype for _, part in parts))
    stacked = np.empty(whole, dtype)
    for layer, part in parts:
        stacked[layer.index] = np.asarray(part)
    return stacked
