"""LSTMCell, GRUCell and RNNCell with PyTorch's parameters and layouts, and the updates they share with the layers.

Source: https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers
"""

import jax
import jax.numpy as jnp
from flax import nnx


def lstm_update(inputs: jax.Array, hidden: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The next (h, c) of an LSTM from the two projections (..., 4 * hidden): input, forget, cell, output gate."""
    i, f, g, o = jnp.split(inputs + hidden, 4, axis=-1)
    cell = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell


def gru_update(inputs: jax.Array, hidden: jax.Array, h: jax.Array) -> jax.Array:
    """The next h of a GRU from the two projections (..., 3 * hidden): reset, update, new gate.

    The reset gate scales the projected state, its bias included.
    """
    (xr, xz, xn), (hr, hz, hn) = (jnp.split(a, 3, -1) for a in (inputs, hidden))
    r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
    n = jnp.tanh(xn + r * hn)
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
        self.bias = bias
        k, rows = (hidden_size or 1) ** -0.5, self.gates * hidden_size

        def uniform(*dim: int) -> nnx.Param[jax.Array]:
            return nnx.Param(jax.random.uniform(rngs.params(), dim, jnp.float32, -k, k))

        self.weight_ih = uniform(rows, input_size)
        self.weight_hh = uniform(rows, hidden_size)
        self.bias_ih = uniform(rows) if bias else nnx.data(None)
        self.bias_hh = uniform(rows) if bias else nnx.data(None)

    def project(self, x: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The inputs of all gates from x (..., input) and from h (..., hidden)."""
        inputs, hidden = x @ self.weight_ih[...].T, h @ self.weight_hh[...].T
        if not self.bias:
            return inputs, hidden
        return inputs + self.bias_ih[...], hidden + self.bias_hh[...]

    def zero_state(self, x: jax.Array) -> jax.Array:
        """A state of zeros for an input (..., input)."""
        return jnp.zeros((*x.shape[:-1], self.hidden_size), x.dtype)


class LSTMCell(RecurrentCell):
    """PyTorch's `nn.LSTMCell`: maps x (..., input) and (h, c) to the next (h, c)."""

    gates = 4

    def __call__(self, x: jax.Array, hx: tuple[jax.Array, jax.Array] | None = None) -> tuple[jax.Array, jax.Array]:
        h, c = (self.zero_state(x),) * 2 if hx is None else hx
        return lstm_update(*self.project(x, h), c)


class GRUCell(RecurrentCell):
    """PyTorch's `nn.GRUCell`: maps x (..., input) and h to the next h."""

    gates = 3

    def __call__(self, x: jax.Array, hx: jax.Array | None = None) -> jax.Array:
        h = self.zero_state(x) if hx is None else hx
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
        h = self.zero_state(x) if hx is None else hx
        return rnn_update(*self.project(x, h), self.nonlinearity)
