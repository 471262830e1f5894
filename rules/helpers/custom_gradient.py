"""Functions with a gradient of their own.

Source: https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.Function
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class FunctionContext:
    """What `forward` keeps for `backward`, in its attributes."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *arrays: Any) -> None:
        self.saved_tensors = arrays


def summed_like(gradient: Any, x: Any) -> Any:
    """A gradient in the dtype of `x`, summed over the axes along which `x` was broadcast, as PyTorch does; or None."""
    if gradient is None or not jnp.issubdtype(x.dtype, jnp.inexact):
        return None
    gradient = gradient.sum(tuple(range(gradient.ndim - x.ndim)))
    ones = tuple(i for i, size in enumerate(x.shape) if size == 1)
    return gradient.sum(ones, keepdims=True).astype(x.dtype)


class Function:
    """PyTorch's `autograd.Function`: `apply` gives what `forward` computes, with the gradient that `backward` gives.

    Of the arguments, arrays are differentiated by; all others are what they are when `apply` is called.
    """

    @classmethod
    def apply(cls, *given: Any) -> Any:
        """Calls `forward` with a context and the arguments; of a Variable, with its array."""
        arguments = [each[...] if isinstance(each, nnx.Variable) else each for each in given]
        places = [i for i, each in enumerate(arguments) if isinstance(each, jax.Array | np.ndarray)]
        context = FunctionContext()
        context.needs_input_grad = tuple(i in places for i in range(len(arguments)))

        def forward(*arrays: Any) -> Any:
            filled = dict(enumerate(arguments)) | dict(zip(places, arrays, strict=True))
            return cls.forward(context, *filled.values())  # type: ignore[attr-defined]

        def keep(*arrays: Any) -> Any:
            result = forward(*arrays)
            return result, {
                k: v
                for k, v in vars(context).items()
                if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(v))
            }

        def backward(held: dict[str, Any], gradient: Any) -> Any:
            vars(context).update(held)
            gradients = gradient if isinstance(gradient, tuple) else (gradient,)
            gradients = cls.backward(context, *gradients)  # type: ignore[attr-defined]
            gradients = gradients if isinstance(gradients, tuple) else (gradients,)
            return tuple(summed_like(gradients[i], arguments[i]) for i in places)

        function = jax.custom_vjp(forward)
        function.defvjp(keep, backward)
        return function(*(arguments[i] for i in places))


class FunctionOfOne:
    """PyTorch's `autograd.Function`: `apply` gives what `forward` computes, with the gradient that `backward` gives.

    Of one array, and one array again; `forward` keeps arrays for `backward` by `save_for_backward`.
    """

    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *arrays: Any) -> None:
        self.saved_tensors = arrays

    @classmethod
    def apply(cls, x: Any) -> Any:
        """Calls `forward` with a context and `x`; of a Variable, with its array."""
        context: Any = cls()

        def keep(x: jax.Array) -> Any:
            return context.forward(context, x), context.saved_tensors

        def backward(saved: tuple[Any, ...], gradient: jax.Array) -> Any:
            context.saved_tensors = saved
            return (summed_like(context.backward(context, gradient), x),)

        function = jax.custom_vjp(lambda x: context.forward(context, x))
        function.defvjp(keep, backward)
        return function(x[...])
