"""Linear layers and reshaping modules with PyTorch's constructors and initialisation.

Source: https://docs.pytorch.org/docs/stable/nn.html#linear-layers
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .init import uniform_bias, uniform_init


def linear(inputs: int, outputs: int, **options: Any) -> nnx.Linear:
    """`nnx.Linear` with PyTorch's initial values: kernel and bias uniform in +-1/sqrt(inputs)."""
    return nnx.Linear(inputs, outputs, **uniform_init(inputs), **options)


class Linear(nnx.Linear):
    """PyTorch's `nn.Linear`: `kernel` is (in_features, out_features), Flax's layout."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, rngs: nnx.Rngs):
        super().__init__(
            in_features,
            out_features,
            use_bias=bias,
            **uniform_init(in_features),
            rngs=rngs,
        )

    @property
    def weight(self) -> jax.Array:
        """The kernel in PyTorch's layout, (out_features, in_features)."""
        return self.kernel[...].T


class Transposed:
    """The transpose of a matrix that is a parameter: what is written to it is written to the parameter."""

    def __init__(self, param: nnx.Param):
        self.param = param
        self.shape, self.dtype, self.ndim = param.shape[::-1], param.dtype, 2

    @property
    def T(self) -> jax.Array:
        """The matrix as the parameter holds it."""
        return self.param[...]

    def __getitem__(self, index: Any) -> jax.Array:
        return self.param[...].T[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.param[...] = self.param[...].T.at[index].set(value).T


class TiedLinear(nnx.Linear):
    """A linear layer whose weight is a parameter of another module, as `head.weight = embedding.weight` in PyTorch.

    Both modules hold the same `nnx.Param`, so its gradients add up and one update changes both.

    Args:
      weight: (out_features, in_features), PyTorch's layout, which is that of an embedding table.
      bias: (out_features,), the layer's own; None for none.
    """

    def __init__(self, weight: nnx.Param, bias: nnx.Param | None = None):
        self.weight = weight
        self.out_features, self.in_features = weight.shape[0], weight.shape[1]
        self.bias = nnx.data(None) if bias is None else bias

    @property
    def kernel(self) -> Transposed:
        """The shared weight in Flax's layout, (in_features, out_features)."""
        return Transposed(self.weight)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps (..., in_features) to (..., out_features)."""
        y = x @ self.weight[...].T
        return y if self.bias is None else y + self.bias[...]


class Bilinear(nnx.Module):
    """PyTorch's `nn.Bilinear`: x1 @ weight[o] @ x2 + bias[o] for every output feature o."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, rngs: nnx.Rngs):
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        init = uniform_bias(in1_features)
        self.weight = nnx.Param(init(rngs.params(), (out_features, in1_features, in2_features)))
        self.bias = nnx.Param(init(rngs.params(), (out_features,))) if bias else nnx.data(None)

    def __call__(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        """Maps (..., in1_features) and (..., in2_features) to (..., out_features)."""
        y = jnp.einsum("...i,oij,...j->...o", x1, self.weight[...], x2)
        return y if self.bias is None else y + self.bias[...]


class Identity(nnx.Module):
    """PyTorch's `nn.Identity`: takes any arguments and returns its input."""

    def __init__(self, *args: Any, rngs: nnx.Rngs | None = None, **kwargs: Any):
        pass

    def __call__(self, x: Any) -> Any:
        """Returns `x`."""
        return x


class Flatten(nnx.Module):
    """PyTorch's `nn.Flatten`: joins the axes from `start_dim` to `end_dim`, both included."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1, *, rngs: nnx.Rngs | None = None):
        self.start_dim, self.end_dim = start_dim, end_dim

    def __call__(self, x: jax.Array) -> jax.Array:
        """Reshapes `x`; with the default axes, (N, ...) becomes (N, features)."""
        return jax.lax.collapse(x, self.start_dim, None if self.end_dim == -1 else self.end_dim + 1)


class Unflatten(nnx.Module):
    """PyTorch's `nn.Unflatten`: splits axis `dim` into axes of the given sizes, one of which may be -1."""

    def __init__(self, dim: int, unflattened_size: Sequence[int], *, rngs: nnx.Rngs | None = None):
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Reshapes `x`."""
        axis = self.dim % x.ndim
        return x.reshape(*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :])
