"""Invertible functions of each number, with the logarithms of their derivatives, as in PyTorch's distributions.

Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.transforms
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp


class Transform:
    """An invertible function of each number, as PyTorch's. With `cache_size=1` it remembers the last pair."""

    def __init__(self, cache_size: int = 0):
        self.cache_size, self.last = cache_size, (None, None)

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        raise NotImplementedError

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        raise NotImplementedError

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.last[0] is not x or not self.cache_size:
            self.last = x, self.forward(x)
        return self.last[1]

    def inverse(self, y: jax.Array) -> jax.Array:
        """What numbers were before, remembered or computed."""
        if self.last[1] is not y or not self.cache_size:
            self.last = self.backward(y), y
        return self.last[0]

    @property
    def inv(self) -> "InverseTransform":
        """The transform the other way round."""
        return InverseTransform(self)


class InverseTransform:
    """A transform the other way round, which it has as `inv`."""

    def __init__(self, inv: Any):
        self.inv = inv

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.inv.inverse(x)

    def inverse(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        return self.inv(y)

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return -self.inv.log_abs_det_jacobian(y, x)


class ExpTransform(Transform):
    """y = exp(x)"""

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        return jnp.exp(x)

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        return jnp.log(y)

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return x


class TanhTransform(Transform):
    """y = tanh(x)"""

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        return jnp.tanh(x)

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        return jnp.arctanh(y)

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return 2 * (math.log(2) - x - jax.nn.softplus(-2 * x))


class SigmoidTransform(Transform):
    """y = sigmoid(x), kept off 0 and 1"""

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        info = jnp.finfo(x.dtype)
        return jnp.clip(jax.nn.sigmoid(x), info.tiny, 1 - info.eps)

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        info = jnp.finfo(y.dtype)
        y = jnp.clip(y, info.tiny, 1 - info.eps)
        return jnp.log(y) - jnp.log1p(-y)

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return -jax.nn.softplus(-x) - jax.nn.softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))"""

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        return jax.nn.softplus(x)

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        return jnp.log(-jnp.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return -jax.nn.softplus(-x)


class AffineTransform(Transform):
    """y = loc + scale * x"""

    def __init__(self, loc: Any, scale: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        return self.loc + self.scale * x

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return jnp.broadcast_to(jnp.log(jnp.abs(self.scale)), x.shape)


class PowerTransform(Transform):
    """y = x ** exponent"""

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        return x**self.exponent

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        return jnp.log(jnp.abs(self.exponent * y / x))


class ComposeTransform(Transform):
    """Transforms one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = parts

    def forward(self, x: jax.Array) -> jax.Array:
        """What becomes of numbers."""
        for part in self.parts:
            x = part(x)
        return x

    def backward(self, y: jax.Array) -> jax.Array:
        """What numbers were before."""
        for part in reversed(self.parts):
            y = part.inverse(y)
        return y

    def log_abs_det_jacobian(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The logarithm of the derivative's absolute value."""
        total = jnp.zeros_like(x)
        for part in self.parts:
            total, x = total + part.log_abs_det_jacobian(x, part(x)), part(x)
        return total
