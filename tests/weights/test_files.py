"""State dicts in files: safetensors, pickled, in parts."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from flax import nnx

from t2j_lsp.contract import T2JError
from t2j_lsp.weights import load_torch_state, torch_state

from .pairs import MLP, TorchMLP, randomized


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    return dict(randomized(TorchMLP).state_dict())


def assert_loads(path: Path, state: dict[str, torch.Tensor]) -> None:
    for spelling in (path, str(path)):
        back = torch_state(load_torch_state(MLP(rngs=nnx.Rngs(0)), spelling))
        assert set(back) == set(state)
        for name, value in state.items():
            np.testing.assert_array_equal(back[name], value.numpy(), err_msg=name)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin"])
def test_pickled_files_load(tmp_path: Path, state: dict[str, torch.Tensor], suffix: str) -> None:
    torch.save(state, tmp_path / f"model{suffix}")
    assert_loads(tmp_path / f"model{suffix}", state)


def test_safetensors_files_load(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    safetensors.torch.save_file(state, tmp_path / "model.safetensors")
    assert_loads(tmp_path / "model.safetensors", state)
    assert_loads(tmp_path, state)


def test_bfloat16_survives_both_kinds_of_file(tmp_path: Path) -> None:
    state = {"0.weight": torch.randn(3, 2).bfloat16(), "0.bias": torch.randn(3).bfloat16()}
    torch.save(state, tmp_path / "a.pt")
    safetensors.torch.save_file(state, tmp_path / "b.safetensors")
    for file in ("a.pt", "b.safetensors"):
        module = load_torch_state(nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0))), tmp_path / file)
        assert module.layers[0].kernel[...].dtype == jnp.bfloat16
        back = torch_state(module, tensors=True)
        assert all(torch.equal(back[name], value) for name, value in state.items())
    safetensors.numpy.save_file(torch_state(module), tmp_path / "c.safetensors")
    again = safetensors.torch.load_file(tmp_path / "c.safetensors")
    assert all(torch.equal(again[name], value) for name, value in state.items())


def test_files_in_parts_load_by_index_and_by_folder(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    parts = {"model-1.safetensors": list(state)[:2], "model-2.safetensors": list(state)[2:]}
    for file, names in parts.items():
        safetensors.torch.save_file({name: state[name] for name in names}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: file for file, names in parts.items() for name in names}}))
    assert_loads(index, state)
    assert_loads(tmp_path, state)


class Unlisted:
    """A class that torch.load(weights_only=True) refuses to make."""


def test_a_pickle_that_could_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"model": Unlisted()}, tmp_path / "model.pt")
    with pytest.raises(T2JError, match="could run code"):
        load_torch_state(MLP(rngs=nnx.Rngs(0)), tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.h5", b"", "not a weight file"),
        ("model.safetensors", b"short", "not a readable safetensors file"),
        ("model.pt", b"no pickle", "the file is damaged"),
        ("model.pth", b"", "the file is damaged"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(T2JError, match=message) as caught:
        load_torch_state(MLP(rngs=nnx.Rngs(0)), tmp_path / file)
    assert file in str(caught.value)


def test_a_missing_file_and_an_ambiguous_folder_are_named(tmp_path: Path) -> None:
    module = MLP(rngs=nnx.Rngs(0))
    with pytest.raises(T2JError, match="There is no file"):
        load_torch_state(module, tmp_path / "none.pt")
    with pytest.raises(T2JError, match="holds no"):
        load_torch_state(module, tmp_path)
    for name in ("a.safetensors", "b.safetensors"):
        safetensors.torch.save_file({"x": torch.ones(1)}, tmp_path / name)
    with pytest.raises(T2JError, match="several weight files"):
        load_torch_state(module, tmp_path)


def test_a_file_that_holds_no_mapping_is_refused(tmp_path: Path) -> None:
    torch.save(torch.ones(2), tmp_path / "tensor.pt")
    with pytest.raises(T2JError, match="holds a Tensor, not a state dict"):
        load_torch_state(MLP(rngs=nnx.Rngs(0)), tmp_path / "tensor.pt")
