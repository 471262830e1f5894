"""Reads PyTorch tensors and weight files as numpy arrays, with every dtype kept.

bfloat16 and the 8-bit floats, which numpy lacks, are the dtypes of ``ml_dtypes`` that JAX uses.
"""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from t2j_lsp.contract import T2JError

_PICKLED = (".pt", ".pth", ".bin")
_INDEX = ".index.json"


def to_array(tensor: Any) -> Any:
    """A torch tensor, numpy array or JAX array as an array; None for anything else (``{"epoch": 3}``).

    The result may share memory with ``tensor``.
    """
    if isinstance(tensor, jax.Array | np.ndarray | np.generic):
        return tensor
    if not hasattr(tensor, "detach"):
        return None
    torch = importlib.import_module("torch")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name != "bfloat16" and not name.startswith("float8"):
        return tensor.numpy()
    bits = torch.int16 if name == "bfloat16" else torch.uint8
    return tensor.contiguous().view(bits).numpy().view(np.dtype(name))


def to_tensor(array: np.ndarray[Any, Any]) -> Any:
    """A writable numpy array as a torch tensor on the CPU that shares its memory: `to_array`'s inverse."""
    torch = importlib.import_module("torch")
    name = array.dtype.name
    if name != "bfloat16" and not name.startswith("float8"):
        return torch.from_numpy(array)
    bits = np.int16 if name == "bfloat16" else np.uint8
    return torch.from_numpy(array.view(bits)).view(getattr(torch, name))


def read_file(path: Path) -> Mapping[str, Any]:
    """The state dict in a ``.safetensors``, ``.pt``, ``.pth`` or ``.bin`` file.

    Also in several such files, given their ``*.index.json`` or the folder that holds it. Pickled files are read with
    ``torch.load(weights_only=True)``, which runs no code from the file.
    """
    if path.is_dir():
        path = _in_folder(path)
    if not path.exists():
        raise T2JError(f"There is no file {path}.")
    if path.name.endswith(_INDEX):
        return _read_parts(path)
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix in _PICKLED:
        return _read_pickled(path)
    known = ", ".join((".safetensors", *_PICKLED, _INDEX))
    raise T2JError(f"{path} is not a weight file: its name should end in one of {known}.")


def _in_folder(folder: Path) -> Path:
    for pattern in (f"*.safetensors{_INDEX}", "*.safetensors", f"*.bin{_INDEX}", "*.bin"):
        paths = sorted(folder.glob(pattern))
        if len(paths) == 1:
            return paths[0]
        if paths:
            raise T2JError(f"{folder} holds several weight files ({', '.join(f.name for f in paths)}): name one.")
    raise T2JError(f"{folder} holds no .safetensors or .bin file.")


def _read_parts(index: Path) -> dict[str, Any]:
    """A state dict in several files. ``index`` is JSON: ``{"weight_map": {name: file name}}``."""
    weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    state: dict[str, Any] = {}
    for name in sorted(set(weight_map.values())):
        state.update(read_file(index.parent / name))
    return state


def _read_safetensors(path: Path) -> dict[str, Any]:
    safetensors = importlib.import_module("safetensors")
    load_file = importlib.import_module("safetensors.numpy").load_file
    try:
        state: dict[str, Any] = load_file(path)
    except safetensors.SafetensorError as error:
        raise T2JError(f"{path} is not a readable safetensors file: {error}") from error
    return state


def _read_pickled(path: Path) -> Mapping[str, Any]:
    torch = importlib.import_module("torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise T2JError(
            f"torch.load(weights_only=True) can't read {path}: the file is damaged, or holds more than tensors, and "
            "reading the rest could run code from it. If you trust it, read it with weights_only=False and pass the "
            "state dict."
        ) from error
    if not isinstance(state, Mapping):
        raise T2JError(f"{path} holds a {type(state).__name__}, not a state dict.")
    return state
