"""PyTorch's activations as modules, for code that passes them around as classes or objects.

Source: https://docs.pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity
"""

import jax
import jax.numpy as jnp
from flax import nnx

from .activation import (
    hardshrink,
    hardtanh,
    implicit_softmax_axis,
    leaky_relu,
    prelu,
    rrelu,
    softplus,
    softshrink,
    threshold,
)


class Activation(nnx.Module):
    """Base of the activations without settings; `inplace` is accepted and means nothing in JAX."""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None):
        pass


class ReLU(Activation):
    """PyTorch's `nn.ReLU`: max(x, 0)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x)


class ReLU6(Activation):
    """PyTorch's `nn.ReLU6`: x clipped to [0, 6]."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu6(x)


class SiLU(Activation):
    """PyTorch's `nn.SiLU`: x * sigmoid(x)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.silu(x)


class Mish(Activation):
    """PyTorch's `nn.Mish`: x * tanh(softplus(x))."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.mish(x)


class Sigmoid(Activation):
    """PyTorch's `nn.Sigmoid`."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(x)


class Tanh(Activation):
    """PyTorch's `nn.Tanh`."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(x)


class LogSigmoid(Activation):
    """PyTorch's `nn.LogSigmoid`."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.log_sigmoid(x)


class Hardswish(Activation):
    """PyTorch's `nn.Hardswish`: x * relu6(x + 3) / 6."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.hard_swish(x)


class Hardsigmoid(Activation):
    """PyTorch's `nn.Hardsigmoid`: relu6(x + 3) / 6."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.hard_sigmoid(x)


class Softsign(Activation):
    """PyTorch's `nn.Softsign`: x / (1 + |x|)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.soft_sign(x)


class Tanhshrink(Activation):
    """PyTorch's `nn.Tanhshrink`: x - tanh(x)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return x - jnp.tanh(x)


class SELU(Activation):
    """PyTorch's `nn.SELU`."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.selu(x)


class GELU(nnx.Module):
    """PyTorch's `nn.GELU`: exact, or the tanh approximation."""

    def __init__(self, approximate: str = "none", *, rngs: nnx.Rngs | None = None):
        self.approximate = approximate

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.gelu(x, approximate=self.approximate == "tanh")


class LeakyReLU(nnx.Module):
    """PyTorch's `nn.LeakyReLU`."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False, *, rngs: nnx.Rngs | None = None):
        self.negative_slope = negative_slope

    def __call__(self, x: jax.Array) -> jax.Array:
        return leaky_relu(x, self.negative_slope)


class ELU(nnx.Module):
    """PyTorch's `nn.ELU`."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False, *, rngs: nnx.Rngs | None = None):
        self.alpha = alpha

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.elu(x, self.alpha)


class CELU(nnx.Module):
    """PyTorch's `nn.CELU`."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False, *, rngs: nnx.Rngs | None = None):
        self.alpha = alpha

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.celu(x, self.alpha)


class Hardtanh(nnx.Module):
    """PyTorch's `nn.Hardtanh`."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, *, rngs: nnx.Rngs | None = None
    ):
        self.min_val, self.max_val = min_val, max_val

    def __call__(self, x: jax.Array) -> jax.Array:
        return hardtanh(x, self.min_val, self.max_val)


class Hardshrink(nnx.Module):
    """PyTorch's `nn.Hardshrink`."""

    def __init__(self, lambd: float = 0.5, *, rngs: nnx.Rngs | None = None):
        self.lambd = lambd

    def __call__(self, x: jax.Array) -> jax.Array:
        return hardshrink(x, self.lambd)


class Softshrink(nnx.Module):
    """PyTorch's `nn.Softshrink`."""

    def __init__(self, lambd: float = 0.5, *, rngs: nnx.Rngs | None = None):
        self.lambd = lambd

    def __call__(self, x: jax.Array) -> jax.Array:
        return softshrink(x, self.lambd)


class Softplus(nnx.Module):
    """PyTorch's `nn.Softplus`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0, *, rngs: nnx.Rngs | None = None):
        self.beta, self.threshold = beta, threshold

    def __call__(self, x: jax.Array) -> jax.Array:
        return softplus(x, self.beta, self.threshold)


class Threshold(nnx.Module):
    """PyTorch's `nn.Threshold`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False, *, rngs: nnx.Rngs | None = None):
        self.threshold, self.value = threshold, value

    def __call__(self, x: jax.Array) -> jax.Array:
        return threshold(x, self.threshold, self.value)


class GLU(nnx.Module):
    """PyTorch's `nn.GLU`: the first half of axis `dim` times the sigmoid of the second."""

    def __init__(self, dim: int = -1, *, rngs: nnx.Rngs | None = None):
        self.dim = dim

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.glu(x, self.dim)


class Softmax(nnx.Module):
    """PyTorch's `nn.Softmax`."""

    def __init__(self, dim: int | None = None, *, rngs: nnx.Rngs | None = None):
        self.dim = dim

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x, implicit_softmax_axis(x.ndim) if self.dim is None else self.dim)


class LogSoftmax(nnx.Module):
    """PyTorch's `nn.LogSoftmax`."""

    def __init__(self, dim: int | None = None, *, rngs: nnx.Rngs | None = None):
        self.dim = dim

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.log_softmax(x, implicit_softmax_axis(x.ndim) if self.dim is None else self.dim)


class Softmin(nnx.Module):
    """PyTorch's `nn.Softmin`: the softmax of -x."""

    def __init__(self, dim: int | None = None, *, rngs: nnx.Rngs | None = None):
        self.dim = dim

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.softmax(-x, implicit_softmax_axis(x.ndim) if self.dim is None else self.dim)


class Softmax2d(Activation):
    """PyTorch's `nn.Softmax2d`: over the channels of (N, C, H, W) or (C, H, W)."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x, axis=-3)


class PReLU(nnx.Module):
    """PyTorch's `nn.PReLU`: a learnt slope for negative x, one for all channels (axis 1) or one for each."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, rngs: nnx.Rngs | None = None):
        self.num_parameters = num_parameters
        self.weight = nnx.Param(jnp.full((num_parameters,), init, jnp.float32))

    def __call__(self, x: jax.Array) -> jax.Array:
        return prelu(x, self.weight[...])


class RReLU(nnx.Module):
    """PyTorch's `nn.RReLU`: in training every negative x has a random slope, in evaluation their mean."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False, *, rngs: nnx.Rngs):
        self.lower, self.upper = lower, upper
        self.deterministic = False
        self.rngs = rngs.dropout.fork()

    def __call__(self, x: jax.Array) -> jax.Array:
        return rrelu(x, self.lower, self.upper, deterministic=self.deterministic, rngs=self.rngs)
