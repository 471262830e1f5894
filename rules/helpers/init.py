"""PyTorch's initialisers, as JAX initialisers: functions of (key, shape, dtype).

Fans: for Flax's kernels, `(*spatial, in / groups, out)`, the default axes of `variance_scaling` give PyTorch's fan_in
and fan_out, with groups too. A parameter that keeps PyTorch's layout, `(out, in / groups, *spatial)`, and an embedding
table, `(rows, features)`, need `in_axis=1, out_axis=0`. Exact in JAX as they are, so not here:

- `xavier_uniform_(w, gain)`: `variance_scaling(gain**2, "fan_avg", "uniform")`
- `xavier_normal_(w, gain)`: `variance_scaling(gain**2, "fan_avg", "normal")` (JAX's own `xavier_normal` is truncated)
- `orthogonal_(w, gain)`: `orthogonal(gain)` for Flax's layout, `orthogonal(gain, column_axis=0)` for PyTorch's
- `constant_`, `ones_`, `zeros_`: `constant`, `ones`, `zeros`; `normal_`: `mean + std * rngs.params.normal(shape)`
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx

# The default of nn.Linear and nn.Conv*, kaiming_uniform_(a=sqrt(5)): uniform in +-1/sqrt(fan_in).
uniform_fan_in = nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


def uniform_bias(fan_in: int) -> nnx.Initializer:
    """PyTorch's default initializer of a bias: uniform in +-1/sqrt(fan_in), the fan_in of the kernel beside it."""
    return lambda key, shape, dtype=jnp.float32: jax.random.uniform(key, shape, dtype, -1, 1) * (fan_in or 1) ** -0.5


def uniform_init(n: int, names: tuple[str, ...] = ("kernel_init", "bias_init")) -> dict:
    """PyTorch's initial values of layers with `n` inputs for each output: kernel and bias uniform in +-1/sqrt(n)."""
    return dict.fromkeys(names, lambda *a: jax.random.uniform(*a, -1) / (n or 1) ** 0.5)


def trunc_normal(mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> nnx.Initializer:
    """A truncated normal as `torch.nn.init.trunc_normal_`: `a` and `b` are values, not multiples of `std` as in JAX."""

    def init(key: jax.Array, shape: tuple[int, ...], dtype: jax.typing.DTypeLike = jnp.float32) -> jax.Array:
        return mean + std * jax.random.truncated_normal(key, (a - mean) / std, (b - mean) / std, shape, dtype)

    return init


def fans(x: jax.Array) -> tuple[int, int]:
    """How many inputs and outputs an element of a weight in PyTorch's layout, (out, in, *spatial), has."""
    return math.prod(x.shape[1:]), x.shape[0] * math.prod(x.shape[2:])


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain that PyTorch recommends for a nonlinearity (torch.nn.init.calculate_gain)."""
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3 / 4
    if nonlinearity == "sigmoid" or nonlinearity.startswith(("linear", "conv")):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def kaiming_uniform(
    a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, in_axis: int = -2, out_axis: int = -1
) -> nnx.Initializer:
    """`torch.nn.init.kaiming_uniform_`; for PyTorch's layout pass `in_axis=1, out_axis=0`."""
    scale = calculate_gain(nonlinearity, a) ** 2
    return nnx.initializers.variance_scaling(scale, mode, "uniform", in_axis=in_axis, out_axis=out_axis)


def kaiming_normal(
    a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, in_axis: int = -2, out_axis: int = -1
) -> nnx.Initializer:
    """`torch.nn.init.kaiming_normal_`, not truncated; for PyTorch's layout pass `in_axis=1, out_axis=0`."""
    scale = calculate_gain(nonlinearity, a) ** 2
    return nnx.initializers.variance_scaling(scale, mode, "normal", in_axis=in_axis, out_axis=out_axis)


def identity_matrix(key: jax.Array, shape: tuple[int, ...], dtype: jax.typing.DTypeLike = jnp.float32) -> jax.Array:
    """`torch.nn.init.eye_` for a matrix of either layout; `key` is not used."""
    return jnp.eye(*shape, dtype=dtype)


def dirac(groups: int = 1, *, in_axis: int = -2, out_axis: int = -1) -> nnx.Initializer:
    """`torch.nn.init.dirac_` for a kernel `(*spatial, in / groups, out)`: the convolution passes its input on.

    For PyTorch's layout pass `in_axis=1, out_axis=0`.
    """

    def init(key: jax.Array, shape: tuple[int, ...], dtype: jax.typing.DTypeLike = jnp.float32) -> jax.Array:
        kernel = jnp.moveaxis(jnp.zeros(shape, dtype), (in_axis, out_axis), (-2, -1))
        *spatial, features_in, features_out = kernel.shape
        per_group = features_out // groups
        channel = jnp.arange(min(per_group, features_in))
        centre = tuple(size // 2 for size in spatial)
        for group in range(groups):
            kernel = kernel.at[(*centre, channel, group * per_group + channel)].set(1)
        return jnp.moveaxis(kernel, (-2, -1), (in_axis, out_axis))

    return init
