"""LSTM, GRU and RNN with PyTorch's parameters, layouts and results.

Flax's cells differ: eight separate kernels in an LSTM, one bias where PyTorch adds two, no stacked states.
Source: https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from .packed_sequence import PackedSequence
from .recurrent_cells import gru_update, lstm_update, rnn_update


class RecurrentBase(nnx.Module):
    """Layers of recurrent cells, in one or both directions. Weights hold the rows of all `gates` in PyTorch's order."""

    _gates: int
    _state_arrays: int
    """Arrays of the state: 1 for h, 2 for (h, c)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        rngs: nnx.Rngs,
    ):
        self.hidden_size, self.num_layers, self.batch_first = hidden_size, num_layers, batch_first
        self.input_size, self.bias, self.dropout = input_size, bias, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        if dropout > 0:
            self.between_layers = nnx.Dropout(dropout, rngs=rngs)
        k, rows = (hidden_size or 1) ** -0.5, self._gates * hidden_size

        def uniform(*dim: int) -> nnx.Param[jax.Array]:
            return nnx.Param(jax.random.uniform(rngs.params(), dim, jnp.float32, -k, k))

        for layer in range(num_layers):
            width = input_size if layer == 0 else (proj_size or hidden_size) * (2 if bidirectional else 1)
            for direction in ("", "_reverse") if bidirectional else ("",):
                setattr(self, f"weight_ih_l{layer}{direction}", uniform(rows, width))
                setattr(self, f"weight_hh_l{layer}{direction}", uniform(rows, proj_size or hidden_size))
                if bias:
                    setattr(self, f"bias_ih_l{layer}{direction}", uniform(rows))
                    setattr(self, f"bias_hh_l{layer}{direction}", uniform(rows))
                if proj_size:
                    setattr(self, f"weight_hr_l{layer}{direction}", uniform(proj_size, hidden_size))

    def next_state(self, inputs: jax.Array, hidden: jax.Array, state: Any) -> Any:
        """The next state of a cell, from the projected input and the projected hidden state."""
        raise NotImplementedError

    def state_of(self, state: Any, index: int) -> Any:
        """The state of one layer in one direction."""
        return state[index] if self._state_arrays == 1 else (state[0][index], state[1][index])

    def __call__(self, x: Any, hx: Any = None) -> tuple[Any, Any]:
        """Runs all layers.

        Args:
          x: (T, N, input), (N, T, input) with `batch_first`, (T, input), or a packed sequence.
          hx: the state, h or (h, c): (layers * directions, N, size), or without N; zeros for None.
        Returns:
          The last layer's outputs in the layout of `x`, and the final state in the layout of `hx`.
        """
        lengths = None
        if isinstance(x, PackedSequence):
            x, lengths = x
        x = jnp.moveaxis(x, -2, 0) if lengths is None and self.batch_first else x
        layers = self.num_layers * 2 if self.bidirectional else self.num_layers
        h = jnp.zeros((layers, *x.shape[1:-1], self.proj_size or self.hidden_size), x.dtype)
        c = jnp.zeros((*h.shape[:-1], self.hidden_size), x.dtype) if self.proj_size else h
        state = (h if self._state_arrays == 1 else (h, c)) if hx is None else hx
        valid = None if lengths is None else jnp.arange(x.shape[0])[:, None, None] < lengths[:, None]
        finals = []
        for layer in range(self.num_layers):
            if self.bidirectional:
                forward, ahead = self.scan(x, valid, self.state_of(state, 2 * layer), f"l{layer}")
                backward, back = self.scan(x, valid, self.state_of(state, 2 * layer + 1), f"l{layer}_reverse", True)
                finals += [forward, backward]
                x = jnp.concatenate([ahead, back], axis=-1)
            else:
                final, x = self.scan(x, valid, self.state_of(state, layer), f"l{layer}")
                finals.append(final)
            if self.dropout > 0 and layer < self.num_layers - 1:
                x = self.between_layers(x)
        x = jnp.moveaxis(x, 0, -2) if lengths is None and self.batch_first else x
        last = jnp.stack(finals) if self._state_arrays == 1 else tuple(map(jnp.stack, zip(*finals, strict=True)))
        return x if lengths is None else PackedSequence(x, lengths), last

    def scan(
        self, x: jax.Array, valid: jax.Array | None, state: Any, name: str, reverse: bool = False
    ) -> tuple[Any, jax.Array]:
        """Runs one layer in one direction over x (T, N, input); steps that are not `valid` keep the state."""
        # The inputs of all steps are projected at once.
        xs = x @ getattr(self, f"weight_ih_{name}")[...].T
        if self.bias:
            xs += getattr(self, f"bias_ih_{name}")[...]

        def step(old: Any, one: Any) -> tuple[Any, jax.Array]:
            inputs, is_valid = (one, None) if valid is None else one
            h = old if self._state_arrays == 1 else old[0]
            hidden = h @ getattr(self, f"weight_hh_{name}")[...].T
            if self.bias:
                hidden += getattr(self, f"bias_hh_{name}")[...]
            new = self.next_state(inputs, hidden, old)
            if self.proj_size:
                new = (new[0] @ getattr(self, f"weight_hr_{name}")[...].T, *new[1:])
            if is_valid is not None:
                new = jax.tree.map(lambda n, o: jnp.where(is_valid, n, o), new, old)
            return new, new if self._state_arrays == 1 else new[0]

        return jax.lax.scan(step, state, xs if valid is None else (xs, valid), reverse=reverse)


class LSTM(RecurrentBase):
    """PyTorch's `nn.LSTM`: rows of the weights in the order input, forget, cell, output gate."""

    _gates = 4
    _state_arrays = 2

    def next_state(self, inputs: jax.Array, hidden: jax.Array, state: Any) -> Any:
        return lstm_update(inputs, hidden, state[1])


class GRU(RecurrentBase):
    """PyTorch's `nn.GRU`: rows of the weights in the order reset, update, new gate."""

    _gates = 3
    _state_arrays = 1

    def next_state(self, inputs: jax.Array, hidden: jax.Array, state: Any) -> Any:
        return gru_update(inputs, hidden, state)


class RNN(RecurrentBase):
    """PyTorch's `nn.RNN`: h = tanh (or relu) of the sum of both projections."""

    _gates = 1
    _state_arrays = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        rngs: nnx.Rngs,
    ):
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, rngs=rngs)
        self.nonlinearity = nonlinearity

    def next_state(self, inputs: jax.Array, hidden: jax.Array, state: Any) -> Any:
        return rnn_update(inputs, hidden, self.nonlinearity)
