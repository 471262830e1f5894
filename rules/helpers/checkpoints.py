"""Checkpoints: the states of modules under PyTorch's names, and files of them.

Source: https://docs.pytorch.org/docs/stable/notes/serialization.html
"""

import pickle
import zipfile
from collections import UserDict, namedtuple
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from .names import LAYERS_WITH_WEIGHTS

TORCH_NAMES = dict.fromkeys(["kernel", "scale", "embedding"], "weight") | {"mean": "running_mean", "var": "running_var"}


class Place(NamedTuple):
    """Where a parameter or buffer is kept; a kernel of Flax, (*size, in, out), is (out, in, *size) in PyTorch."""

    variable: nnx.Variable[jax.Array]
    is_kernel: bool

    def read(self) -> jax.Array:
        """The array in PyTorch's layout."""
        array = self.variable[...]
        return jnp.moveaxis(array, (-1, -2), (0, 1)) if self.is_kernel else array

    def laid_out(self, array: Any) -> Any:
        """An array of PyTorch's layout in that of the place."""
        return jnp.moveaxis(array, (0, 1), (-1, -2)) if self.is_kernel else array

    def write(self, array: Any) -> None:
        """Sets the array from PyTorch's layout."""
        array = self.laid_out(array)
        self.variable.set_value(jnp.array(array, self.variable[...].dtype))


def saved_places(module: nnx.Pytree, prefix: str = "", every: bool = False) -> Iterator[tuple[str, Place]]:
    """PyTorch's names of what it saves of a module, with the places: parameters, buffers, then the parts.

    With `every`, also of the buffers that it doesn't save. They come in the order of their assignment, which Flax keeps
    in `_pytree__nodes`; `vars(module)` is in alphabetical order once `nnx.jit` was given the module.
    """
    names = TORCH_NAMES if isinstance(module, LAYERS_WITH_WEIGHTS) else {}
    held = {k: vars(module)[k] for k in module._pytree__nodes if k in vars(module)}
    own = [k for k, v in held.items() if isinstance(v, nnx.Variable)]
    own.sort(key=lambda k: (not isinstance(held[k], nnx.Param), k not in names))
    for key in own:
        kept = every or held[key].get_metadata("persistent", True)
        if kept and not isinstance(held[key], nnx.RngState):
            place = Place(held[key], bool(names) and key == "kernel")
            yield prefix + names.get(key, key), place
    for key, part in held.items():
        if isinstance(part, nnx.Pytree):
            bare = isinstance(module, nnx.Sequential | nnx.SpectralNorm) and key in ("layers", "layer_instance")
            yield from saved_places(part, prefix if bare else f"{prefix}{key}.", every)


class StateDict(UserDict[str, Any]):
    """A module's parameters and buffers under PyTorch's names and in PyTorch's layouts.

    It follows the module, as PyTorch's `state_dict()` does; what is pickled or copied by `copy.deepcopy` doesn't.
    `num_batches_tracked` is not in it: Flax doesn't count batches.
    """

    def __init__(self, module: nnx.Module):
        super().__init__(saved_places(module))

    def __getitem__(self, name: str) -> Any:
        place = self.data[name]
        return place.read() if isinstance(place, Place) else place

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


# The names that a state dict lacks, and those for which a module has no place.
IncompatibleKeys = namedtuple("IncompatibleKeys", "missing_keys unexpected_keys")


def load_state_dict(module: nnx.Module, state: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
    """Writes arrays under PyTorch's names into a module.

    Raises RuntimeError where names or shapes differ; names only if `strict`.
    """
    places = dict(saved_places(module))
    counts = [k for k in state if k.endswith("num_batches_tracked")]
    arrays = {k: np.asarray(state[k]) for k in state if k not in counts}
    missing = [k for k in places if k not in arrays]
    unexpected = [k for k in arrays if k not in places]
    found = [k for k in places if k in arrays]
    misshapen = [k for k in found if places[k].read().shape != arrays[k].shape]
    if misshapen or strict and (missing or unexpected):
        raise RuntimeError(f"{type(module).__name__} can't load: {missing=}, {unexpected=}, {misshapen=}")
    for name in found:
        places[name].write(arrays[name])
    return IncompatibleKeys(missing, unexpected)


def save_pickle(value: Any, path: Any) -> None:
    """Writes arrays, as numpy's, and state dicts, in dicts and lists with numbers and texts if need be."""

    class Pickler(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, jax.Array):
                return np.asarray(value).__reduce__()
            return NotImplemented

    with open(path, "wb") as file:
        Pickler(file).dump(value)


PLAIN = {
    "numpy": ("_reconstruct", "_frombuffer", "ndarray", "dtype", "scalar"),
    "builtins": ("dict", "set", "bytearray", "complex"),
    "collections": ("OrderedDict", "defaultdict", "Counter"),
    **{"ml_dtypes": ("bfloat16",), "_codecs": ("encode",)},
}


class PlainUnpickler(pickle.Unpickler):
    """Reads arrays, containers, numbers and texts, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in PLAIN.get(module.partition(".")[0], ()):
            raise pickle.UnpicklingError(
                f"a {module}.{name} is in the file: weights_only=False reads it, and may run code"
            )
        return super().find_class(module, name)


def load_pickle(path: Any, weights_only: bool = True) -> Any:
    """Reads what `save_pickle` or `torch.save` wrote; tensors become numpy's arrays."""
    unpickler = PlainUnpickler if weights_only else pickle.Unpickler
    if zipfile.is_zipfile(path):
        return load_torch_file(path, unpickler)
    with open(path, "rb") as file:
        return unpickler(file).load()


STORAGES = {
    **{"Float": "float32", "Double": "float64", "Half": "float16", "Long": "int64"},
    **{"Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8"},
    **{"Bool": "bool", "BFloat16": "bfloat16", "ComplexFloat": "complex64"},
}


def load_torch_file(path: Any, unpickler: type[pickle.Unpickler]) -> Any:
    """Reads a file of `torch.save`, a zip archive with a pickle and the bytes of each storage, without PyTorch."""

    def tensor(storage: Any, offset: int, size: Any, stride: Any, *rest: Any) -> Any:
        strides = [step * storage.itemsize for step in stride]
        return np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()

    functions = {"_rebuild_tensor_v2": tensor, "Size": tuple}
    functions["_rebuild_parameter"] = lambda data, *rest: data

    class Unpickler(unpickler):  # type: ignore[valid-type]
        def find_class(self, module: str, name: str) -> Any:
            if not module.startswith("torch"):
                return super().find_class(module, name)
            if name not in functions and name.removesuffix("Storage") not in STORAGES:
                raise pickle.UnpicklingError(f"only PyTorch can read {module}.{name}")
            return functions.get(name, name.removesuffix("Storage"))

        def persistent_load(self, place: Any) -> Any:
            _, storage, key, *_ = place
            data = archive.read(f"{folder}data/{key}")
            return np.frombuffer(data, jnp.dtype(STORAGES[storage]))

    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
        folder = name.removesuffix("data.pkl")
        return Unpickler(archive.open(name)).load()
