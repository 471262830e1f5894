"""Recurrent layers against PyTorch: layers, directions, projections, given and missing states, packed sequences."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import packed_sequence, recurrent
from tests.helpers.compare import array, copy_state, randomize, same_distribution, same_module

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("LSTM", (3, 4), {}),
    ("LSTM", (3, 4, 2), dict(batch_first=True, bidirectional=True, proj_size=2)),
    ("LSTM", (3, 4, 2, False, True, 1.0, True), {}),
    ("GRU", (3, 4, 2), dict(batch_first=True, bidirectional=True)),
    ("GRU", (3, 4, 1, False), {}),
    ("RNN", (3, 4, 2), dict(bidirectional=True, nonlinearity="relu")),
    ("RNN", (3, 4, 1, "tanh", False, True), {}),
]
IDS = [f"{name} {args} {kwargs}" for name, args, kwargs in CASES]


def make(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[nnx.Module, torch.nn.Module]:
    return getattr(recurrent, name)(*args, **kwargs, rngs=nnx.Rngs(0)), getattr(torch.nn, name)(*args, **kwargs)


def zero_states(name: str, reference: torch.nn.RNNBase, *batch: int) -> list[np.ndarray]:
    count = reference.num_layers * (2 if reference.bidirectional else 1)
    sizes = [reference.proj_size or reference.hidden_size, reference.hidden_size]
    return [array(count, *batch, size, seed=3 + i) for i, size in enumerate(sizes[: 2 if name == "LSTM" else 1])]


class WithStates(torch.nn.Module):
    """Passes states as one argument, so that gradients with respect to them are compared too."""

    def __init__(self, inner: torch.nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> Any:
        return self.inner(x, states if len(states) == 2 else states[0])


class WithStatesNNX(nnx.Module):
    def __init__(self, inner: nnx.Module):
        self.inner = inner

    def __call__(self, x: Any, *states: Any) -> Any:
        return self.inner(x, states if len(states) == 2 else states[0])


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES, ids=IDS)
def test_layer_starts_from_zeros(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    layer, reference = make(name, args, kwargs)
    same_module(layer, reference, array(5, 2, 3), jit=True)


@pytest.mark.parametrize(("name", "args", "kwargs"), [CASES[1], CASES[3]], ids=[IDS[1], IDS[3]])
def test_layer_takes_states_and_unbatched_inputs(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for shape, batch in (((2, 5, 3), (2,)), ((5, 3), ())):
        layer, reference = make(name, args, kwargs)
        states = zero_states(name, reference, *batch)
        same_module(WithStatesNNX(layer), WithStates(reference), array(*shape), *states, jit=True)


def test_unbatched_input_without_states_runs_eagerly() -> None:
    same_module(*make("LSTM", (3, 4), {}), array(2, 3))


def test_dropout_acts_between_layers_in_training_only() -> None:
    layer, reference = make("GRU", (3, 4, 2), dict(dropout=0.5))
    same_module(layer, reference, array(5, 2, 3), train=False, jit=True)
    layer.train()
    first, second = (layer(jnp.asarray(array(5, 2, 3)))[0] for _ in range(2))
    assert not np.allclose(first, second)


def test_fresh_parameters_are_distributed_as_in_pytorch() -> None:
    same_distribution(*make("LSTM", (64, 64), {}))


class Packed(torch.nn.Module):
    """Packs, runs and pads again; lengths out of order, as `enforce_sorted=False` allows."""

    def __init__(self, inner: torch.nn.Module, lengths: list[int]):
        super().__init__()
        self.inner, self.lengths = inner, lengths

    def forward(self, x: torch.Tensor) -> Any:
        utils = torch.nn.utils.rnn
        packed = utils.pack_padded_sequence(x, torch.tensor(self.lengths), batch_first=True, enforce_sorted=False)
        outputs, states = self.inner(packed)
        return *utils.pad_packed_sequence(outputs, batch_first=True, padding_value=-7.0), states


class PackedNNX(nnx.Module):
    def __init__(self, inner: nnx.Module, lengths: list[int]):
        self.inner, self.lengths = inner, tuple(lengths)

    def __call__(self, x: Any) -> Any:
        packed = packed_sequence.pack_padded_sequence(x, self.lengths, batch_first=True, enforce_sorted=False)
        outputs, states = self.inner(packed)
        return *packed_sequence.pad_packed_sequence(outputs, batch_first=True, padding_value=-7.0), states


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_packed_sequences_give_the_states_of_the_last_valid_steps(name: str) -> None:
    layer, reference = make(name, (3, 4, 2), dict(bidirectional=True, batch_first=True))
    lengths = [2, 5, 3]
    same_module(PackedNNX(layer, lengths), Packed(reference, lengths), array(3, 5, 3), jit=True)


def test_pad_packed_sequence_to_a_total_length() -> None:
    x = jnp.ones((4, 2, 3))
    packed = packed_sequence.pack_padded_sequence(x, [4, 1])
    longer, lengths = packed_sequence.pad_packed_sequence(packed, total_length=6)
    assert longer.shape == (6, 2, 3)
    np.testing.assert_array_equal(longer.sum(axis=(0, 2)), [12, 3])
    np.testing.assert_array_equal(lengths, [4, 1])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
def test_pad_sequence(batch_first: bool, side: str) -> None:
    sequences = [array(length, 2, seed=length) for length in (3, 1, 4)]
    options: dict[str, Any] = dict(batch_first=batch_first, padding_value=-1.5, padding_side=side)
    want = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(s) for s in sequences], **options)
    got = packed_sequence.pad_sequence([jnp.asarray(s) for s in sequences], **options)
    np.testing.assert_array_equal(got, want)


def test_pad_sequence_keeps_integers() -> None:
    got = packed_sequence.pad_sequence([jnp.array([1, 2]), jnp.array([3])], batch_first=True, padding_value=9)
    assert got.dtype.kind == "i"
    np.testing.assert_array_equal(got, [[1, 2], [3, 9]])


def test_states_have_pytorchs_names_in_the_module_tree() -> None:
    layer, reference = make("LSTM", (3, 4, 2), dict(bidirectional=True, proj_size=2))
    copy_state(randomize(reference), layer)
    np.testing.assert_array_equal(layer.weight_hr_l1_reverse[...], reference.weight_hr_l1_reverse.detach())
