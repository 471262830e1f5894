"""LSTM, GRU and RNN with PyTorch's parameters, layouts and results.

Flax's cells differ: eight separate kernels in an LSTM, one bias where PyTorch adds two, no stacked states.
Source: https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from .init import uniform_between
from .packed_sequence import PackedSequence
from .recurrent_cells import gru_update, lstm_update, rnn_update


class RecurrentBase(nnx.Module):
    """Layers of recurrent cells, in one or both directions. Weights hold the rows of all `gates` in PyTorch's order."""

    gates: int

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
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self.between_layers = nnx.Dropout(dropout, rngs=rngs if dropout > 0 else None)
        self.directions = ("", "_reverse") if bidirectional else ("",)
        bound = 1 / math.sqrt(hidden_size)
        init = uniform_between(-bound, bound)
        rows, output_size = self.gates * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else output_size * len(self.directions)
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, output_size)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for direction in self.directions:
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{direction}", nnx.Param(init(rngs.params(), shape)))

    def update(self, inputs: jax.Array, hidden: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        """The next state of a cell, from the projected input and the projected hidden state."""
        raise NotImplementedError

    def state_sizes(self) -> tuple[int, ...]:
        """Width of each array of the state."""
        return (self.hidden_size,)

    def run(
        self, x: jax.Array | PackedSequence, state: tuple[jax.Array, ...] | None
    ) -> tuple[jax.Array | PackedSequence, tuple[jax.Array, ...]]:
        """Runs all layers.

        Args:
          x: (T, N, input), (N, T, input) with `batch_first`, (T, input), or a packed sequence.
          state: for each array of the state (layers * directions, N, size), or without N; zeros for None.
        Returns:
          The last layer's outputs in the layout of `x`, and the final state in the layout of `state`.
        """
        y, lengths = (x.padded, x.lengths) if isinstance(x, PackedSequence) else (x, None)
        batched = y.ndim == 3
        swapped = lengths is None and batched and self.batch_first
        if not batched:
            y = y[:, None]
            state = None if state is None else tuple(s[:, None] for s in state)
        elif swapped:
            y = jnp.swapaxes(y, 0, 1)
        if state is None:
            count = self.num_layers * len(self.directions)
            state = tuple(jnp.zeros((count, y.shape[1], size), y.dtype) for size in self.state_sizes())
        valid = None if lengths is None else jnp.arange(y.shape[0])[:, None, None] < lengths[:, None]
        finals: list[tuple[jax.Array, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in self.directions:
                first = tuple(s[len(finals)] for s in state)
                final, output = self.scan(y, valid, first, f"l{layer}{direction}")
                finals.append(final)
                outputs.append(output)
            y = jnp.concatenate(outputs, axis=-1)
            if layer < self.num_layers - 1:
                y = self.between_layers(y)
        last = tuple(jnp.stack(arrays) for arrays in zip(*finals, strict=True))
        if lengths is not None:
            return PackedSequence(y, lengths), last
        if not batched:
            return y[:, 0], tuple(s[:, 0] for s in last)
        return jnp.swapaxes(y, 0, 1) if swapped else y, last

    def scan(
        self, x: jax.Array, valid: jax.Array | None, state: tuple[jax.Array, ...], name: str
    ) -> tuple[tuple[jax.Array, ...], jax.Array]:
        """Runs one layer in one direction over x (T, N, input); steps that are not `valid` keep the state."""
        weight_hh = getattr(self, f"weight_hh_{name}")[...]
        weight_hr = getattr(self, f"weight_hr_{name}")[...] if self.proj_size else None
        inputs = x @ getattr(self, f"weight_ih_{name}")[...].T  # of all steps at once
        bias_hh = 0.0
        if self.bias:
            inputs += getattr(self, f"bias_ih_{name}")[...]
            bias_hh = getattr(self, f"bias_hh_{name}")[...]

        def step(state: tuple[jax.Array, ...], xs: Any) -> tuple[tuple[jax.Array, ...], jax.Array]:
            inputs, is_valid = (xs, None) if valid is None else xs
            new = self.update(inputs, state[0] @ weight_hh.T + bias_hh, state)
            if weight_hr is not None:
                new = (new[0] @ weight_hr.T, *new[1:])
            if is_valid is not None:
                new = tuple(jnp.where(is_valid, n, s) for n, s in zip(new, state, strict=True))
            return new, new[0]

        xs = inputs if valid is None else (inputs, valid)
        return lax.scan(step, state, xs, reverse=name.endswith("_reverse"))


class LSTM(RecurrentBase):
    """PyTorch's `nn.LSTM`: rows of the weights in the order input, forget, cell, output gate."""

    gates = 4

    def state_sizes(self) -> tuple[int, ...]:
        return (self.proj_size or self.hidden_size, self.hidden_size)

    def update(self, inputs: jax.Array, hidden: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return lstm_update(inputs, hidden, state[1])

    def __call__(self, x: Any, hx: tuple[jax.Array, jax.Array] | None = None) -> tuple[Any, tuple[jax.Array, ...]]:
        """Returns the outputs and the final (h, c)."""
        return self.run(x, hx)


class GRU(RecurrentBase):
    """PyTorch's `nn.GRU`: rows of the weights in the order reset, update, new gate."""

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        rngs: nnx.Rngs,
    ):
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, rngs=rngs)

    def update(self, inputs: jax.Array, hidden: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return (gru_update(inputs, hidden, state[0]),)

    def __call__(self, x: Any, hx: jax.Array | None = None) -> tuple[Any, jax.Array]:
        """Returns the outputs and the final h."""
        outputs, (h,) = self.run(x, None if hx is None else (hx,))
        return outputs, h


class RNN(RecurrentBase):
    """PyTorch's `nn.RNN`: h = tanh (or relu) of the sum of both projections."""

    gates = 1

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

    def update(self, inputs: jax.Array, hidden: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return (rnn_update(inputs, hidden, self.nonlinearity),)

    def __call__(self, x: Any, hx: jax.Array | None = None) -> tuple[Any, jax.Array]:
        """Returns the outputs and the final h."""
        outputs, (h,) = self.run(x, None if hx is None else (hx,))
        return outputs, h
