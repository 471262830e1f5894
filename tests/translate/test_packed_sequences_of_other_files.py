"""Packed sequences that one file makes and another runs: each file has its own copy of their class."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state

from .side_by_side import randomized
from .test_sequentials_of_other_files import HEAD, both

PACKING = f"""{HEAD}from torch.nn.utils.rnn import pack_padded_sequence


def gathered(x, lengths):
    return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)


class Packer(nn.Module):
    def forward(self, x, lengths):
        return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
"""
MODEL = f"""{HEAD}from torch.nn.utils.rnn import pad_packed_sequence
from packing import Packer, gathered


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{{layer}}(3, 4, batch_first=True)
        self.packer = Packer()

    def forward(self, x, lengths):
        out, h = self.rnn({{packed}})
        return pad_packed_sequence(out, batch_first=True)[0]
"""


@pytest.mark.parametrize(
    ("layer", "packed"),
    [("GRU", "gathered(x, lengths)"), ("LSTM", "gathered(x, lengths)"), ("GRU", "self.packer(x, lengths)")],
)
def test_a_layer_runs_what_another_file_packs(
    layer: str, packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = both(tmp_path, {"packing": PACKING, "model": MODEL.format(layer=layer, packed=packed)}, monkeypatch)
    x, lengths = np.random.default_rng(0).normal(size=(2, 5, 3)), [5, 2]
    with jax.enable_x64(True):
        reference = randomized(modules["torch"].Net())
        module = modules["jax"].Net(rngs=modules["jax"].nnx.Rngs(0))
        load_torch_state(module, reference.state_dict())
        wanted = reference(torch.as_tensor(x), torch.tensor(lengths)).detach().numpy()
        np.testing.assert_allclose(module(jnp.asarray(x), jnp.asarray(lengths)), wanted, atol=1e-10)


ENCODER = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def forward(self, {name}):
        return self.rnn({name})
"""


@pytest.mark.parametrize(("name", "kept"), [("packed", True), ("x_packed", True), ("x", False), ("backpack", False)])
def test_a_parameter_may_be_packed_if_its_name_says_so(name: str, kept: bool) -> None:
    done = convert(HEAD + ENCODER.format(name=name))
    assert not done.gaps and ("isinstance(x, tuple)" in done.code) == kept
