"""LSTMCell, GRUCell and RNNCell with PyTorch's parameters and layouts, and the updates they share with the layers.

Source: https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers
"""

import jax
import jax.numpy as jnp
from flax import nnx

from .init import uniform_bias


def lstm_update(inputs: jax.Array, hidden: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The next (h, c) of an LSTM from the two projections (..., 4 * hidden): input, forget, cell, output gate."""
    i, f, g, o = jnp.split(inputs + hidden, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru_update(inputs: jax.Array, hidden: jax.Array, h: jax.Array) -> jax.Array:
    """The next h of a GRU from the two projections (..., 3 * hidden): reset, update, new gate.

    The reset gate scales the projected state, its bias included.
    """
    input_r, input_z, input_n = jnp.split(inputs, 3, axis=-1)
    hidden_r, hidden_z, hidden_n = jnp.split(hidden, 3, axis=-1)
    r, z = jax.nn.sigmoid(input_r + hidden_r), jax.nn.sigmoid(input_z + hidden_z)
    n = jnp.tanh(input_n + r * hidden_n)
    return (1 - z) * n + z * h


def rnn_update(inputs: jax.Array, hidden: jax.Array, nonlinearity: str) -> jax.Array:
    """The next h of a plain recurrent cell."""
    return jnp.tanh(inputs + hidden) if nonlinearity == "tanh" else jax.nn.relu(inputs + hidden)


class RecurrentCell(nnx.Module):
    """Parameters of one recurrent cell; `weight_ih` and `weight_hh` hold the rows of all `gates`."""

    gates: int

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, rngs: nnx.Rngs):
        self.input_size = input_size
        self.hidden_size = hidden_size
        init = uniform_bias(hidden_size)
        rows = self.gates * hidden_size
        self.weight_ih = nnx.Param(init(rngs.params(), (rows, input_size)))
        self.weight_hh = nnx.Param(init(rngs.params(), (rows, hidden_size)))
        self.bias_ih = nnx.Param(init(rngs.params(), (rows,))) if bias else nnx.data(None)
        self.bias_hh = nnx.Param(init(rngs.params(), (rows,))) if bias else nnx.data(None)

    def project(self, x: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The inputs of all gates from x (..., input) and from h (..., hidden)."""
        inputs, hidden = x @ self.weight_ih[...].T, h @ self.weight_hh[...].T
        if self.bias_ih is None:
            return inputs, hidden
        return inputs + self.bias_ih[...], hidden + self.bias_hh[...]

    def zeros(self, x: jax.Array) -> jax.Array:
        """A state of zeros for an input (..., input)."""
        return jnp.zeros((*x.shape[:-1], self.hidden_size), x.dtype)


class LSTMCell(RecurrentCell):
    """PyTorch's `nn.LSTMCell`: maps x (..., input) and (h, c) to the next (h, c)."""

    gates = 4

    def __call__(self, x: jax.Array, hx: tuple[jax.Array, jax.Array] | None = None) -> tuple[jax.Array, jax.Array]:
        h, c = hx if hx is not None else (self.zeros(x), self.zeros(x))
        return lstm_update(*self.project(x, h), c)


class GRUCell(RecurrentCell):
    """PyTorch's `nn.GRUCell`: maps x (..., input) and h to the next h."""

    gates = 3

    def __call__(self, x: jax.Array, hx: jax.Array | None = None) -> jax.Array:
        h = hx if hx is not None else self.zeros(x)
        return gru_update(*self.project(x, h), h)


class RNNCell(RecurrentCell):
    """PyTorch's `nn.RNNCell`: maps x (..., input) and h to the next h."""

    gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *, rngs: nnx.Rngs
    ):
        super().__init__(input_size, hidden_size, bias, rngs=rngs)
        self.nonlinearity = nonlinearity

    def __call__(self, x: jax.Array, hx: jax.Array | None = None) -> jax.Array:
        h = hx if hx is not None else self.zeros(x)
        return rnn_update(*self.project(x, h), self.nonlinearity)
