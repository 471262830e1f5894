"""Functions with a gradient of their own.

Source: https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.Function
"""

from typing import Any

import jax
import numpy as np


class FunctionContext:
    """What `forward` keeps for `backward`, in its attributes."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *arrays: Any) -> None:
        self.saved_tensors = arrays


class Function:
    """PyTorch's `autograd.Function`: `apply` gives what `forward` computes, with the gradient that `backward` gives.

    Of the arguments, arrays are differentiated by; all others are what they are when `apply` is called.
    """

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Calls `forward` with a context and the arguments."""
        places = [i for i, given in enumerate(arguments) if isinstance(given, jax.Array | np.ndarray)]
        context = FunctionContext()
        context.needs_input_grad = tuple(i in places for i in range(len(arguments)))

        def forward(*arrays: Any) -> Any:
            given = dict(enumerate(arguments)) | dict(zip(places, arrays, strict=True))
            return cls.forward(context, *given.values())  # type: ignore[attr-defined]

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
            return tuple(gradients[i] for i in places)

        function = jax.custom_vjp(forward)
        function.defvjp(keep, backward)
        return function(*(arguments[i] for i in places))
