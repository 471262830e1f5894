"""Modules as functions of their arrays, under PyTorch's names and in its layouts, and gradients in PyTorch's order.

Source: https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .checkpoints import saved_places, torch_array


def named_variables(module: nnx.Pytree) -> list[tuple[str, nnx.Param]]:
    """The variables of a module's parameters, in PyTorch's order and under its names."""
    return [(name, v) for name, (v, _) in saved_places(module) if isinstance(v, nnx.Param)]


def named_arrays(module: nnx.Module, parameters: bool = True) -> OrderedDict[str, jax.Array]:
    """A module's parameters, or else its buffers, in PyTorch's order; what is shared is under its first name."""
    arrays, seen = OrderedDict(), set()
    for name, (variable, is_kernel) in saved_places(module, every=True):
        if isinstance(variable, nnx.Param) == parameters and id(variable) not in seen:
            arrays[name] = torch_array(variable, is_kernel)
        seen.add(id(variable))
    return arrays


def vector_to_parameters(vector: jax.Array, module: nnx.Module) -> None:
    """Writes a flat vector into a module's parameters, in PyTorch's order and layouts, as `named_arrays` has them.

    Args:
      vector: (n,), of all the parameters' sizes together.
      module: what is written into.
    """
    arrays, start = {}, 0
    for name, array in named_arrays(module).items():
        arrays[name] = vector[start : start + array.size].reshape(array.shape)
        start += array.size
    for name, (variable, is_kernel) in saved_places(module):
        if name in arrays:
            variable.set_value(jnp.moveaxis(arrays[name], (0, 1), (-1, -2)) if is_kernel else arrays[name])


def functional_call(module: nnx.Module, arrays: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """Calls a module with other arrays in place of its parameters and buffers. The module itself stays as it is.

    Args:
      module: what is called.
      arrays: arrays by PyTorch's names and in its layouts, as of `named_arrays`; or several such dicts.
      args: the arguments of the call, or its only one.
      kwargs: those that are given by name.

    Raises:
      KeyError: the module has nothing of such a name.
      TypeError: a Variable is given, which has Flax's layout.
      ValueError: the call changes the module's state: running statistics, or the keys of dropout.
    """
    module = nnx.clone(module)
    places = dict(saved_places(module, every=True))
    for given in [arrays] if isinstance(arrays, Mapping) else arrays:
        for name, array in given.items():
            if isinstance(array, nnx.Variable):
                raise TypeError(f"functional_call: {name} is a Variable; make the dict by named_arrays(module)")
            if not name.endswith("num_batches_tracked"):
                variable, is_kernel = places[name]
                variable.set_value(jnp.moveaxis(array, (0, 1), (-1, -2)) if is_kernel else array)
    before = [(path, variable.get_value()) for path, variable in nnx.to_flat_state(nnx.state(module))]
    out = module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    after = dict(nnx.to_flat_state(nnx.state(module)))
    changed = [path for path, value in before if after[path].get_value() is not value]
    if changed:
        raise ValueError(f"functional_call: the call changes {changed}, which would be lost; call eval() first")
    return out


def stack_module_state(
    modules: Sequence[nnx.Module],
) -> tuple[OrderedDict[str, jax.Array], OrderedDict[str, jax.Array]]:
    """The parameters and the buffers of modules of one class, each with a new first axis for the modules."""
    states = [[named_arrays(module, parameters) for module in modules] for parameters in (True, False)]
    parameters, buffers = (jax.tree.map(lambda *arrays: jnp.stack(arrays), *each) for each in states)
    return parameters, buffers


def grad_and_value(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., tuple[Any, Any]]:
    """As `jax.value_and_grad`, with the gradient before the value."""

    def call(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = jax.value_and_grad(fun, argnums, has_aux)(*args, **kwargs)
        return gradient, value

    return call


def vector_jacobian_product(fun: Callable[..., Any], primals: Any, cotangents: Any = None) -> tuple[Any, Any]:
    """The value of `fun` at `primals`, an array or a tuple, and `cotangents` times its Jacobian there."""
    alone = not isinstance(primals, tuple)
    value, pullback = jax.vjp(fun, *((primals,) if alone else primals))
    products = pullback(jnp.ones_like(value) if cotangents is None else cotangents)
    return value, products[0] if alone else products
