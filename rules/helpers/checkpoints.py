"""Checkpoints: the states of modules under PyTorch's names, and files of them.

Source: https://docs.pytorch.org/docs/stable/notes/serialization.html
"""

import functools
import pickle
import zipfile
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Iterable, Iterator, KeysView, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from .names import LAYERS_WITH_WEIGHTS, is_nameless

TORCH_NAMES = {
    "kernel": "weight",
    "scale": "weight",
    "embedding": "weight",
    "mean": "running_mean",
    "var": "running_var",
}


def torch_array(variable: nnx.Variable[Any], is_kernel: bool) -> jax.Array:
    """What a variable holds, in PyTorch's layout: a kernel of Flax, (*size, in, out), is (out, in, *size) there."""
    return jnp.moveaxis(variable[...], (-1, -2), (0, 1)) if is_kernel else variable[...]


def saved_places(
    module: nnx.Pytree, prefix: str = "", every: bool = False, ordered: bool = True
) -> Iterator[tuple[str, Any]]:
    """PyTorch's names of what it saves of a module, with the variables, and whether these are kernels of Flax.

    Args:
      every: also those of the buffers that it doesn't save.
      ordered: parameters, buffers and the parts come as they were assigned.
    """
    names = TORCH_NAMES if isinstance(module, LAYERS_WITH_WEIGHTS) else {}
    if ordered:
        # Flax keeps the order of assignment; `vars(module)` is in alphabetical order behind `nnx.jit`.
        parts = {k: vars(module)[k] for k in module._pytree__nodes if k in vars(module)}
        kinds = {k: isinstance(v, nnx.Variable) + isinstance(v, nnx.Param) for k, v in parts.items()}
        held = sorted(parts.items(), key=lambda item: (-kinds[item[0]], item[0] not in names))
    else:
        held = list(vars(module).items())
    for k, v in held:
        if isinstance(v, nnx.Pytree):
            nameless = is_nameless(module, k)
            yield from saved_places(v, prefix if nameless else f"{prefix}{k}.", every, ordered)
        elif isinstance(v, nnx.Variable) and not isinstance(v, nnx.RngState):
            if every or v.get_metadata("persistent", True):
                yield prefix + names.get(k, k), (v, k == "kernel" and k in names)


def torch_arrays(module: nnx.Module, ordered: bool = True) -> dict[str, jax.Array]:
    """A module's parameters and buffers under PyTorch's names and in PyTorch's layouts."""
    return {name: torch_array(*place) for name, place in saved_places(module, ordered=ordered)}


class StateDict(UserDict[str, Any]):
    """A module's parameters and buffers under PyTorch's names and in PyTorch's layouts.

    It follows the module, as PyTorch's `state_dict()` does; what is pickled or copied by `copy.deepcopy` doesn't.
    `num_batches_tracked` is not in it: Flax doesn't count batches.
    """

    def __init__(self, module: nnx.Module):
        super().__init__({name: functools.partial(torch_array, *place) for name, place in saved_places(module)})

    def __getitem__(self, name: str) -> Any:
        value = self.data[name]
        return value() if isinstance(value, functools.partial) else value

    def write(self, name: str, value: Any) -> None:
        """Writes into the module what PyTorch copies into a tensor of its state, in its dtype and shape."""
        variable, is_kernel = self.data[name].args
        old = torch_array(variable, is_kernel)
        array = jnp.broadcast_to(jnp.asarray(value, old.dtype), old.shape)
        variable.set_value(jnp.moveaxis(array, (0, 1), (-1, -2)) if is_kernel else array)

    def keys(self) -> KeysView[str]:
        """The names, which show themselves as PyTorch's do."""
        return OrderedDict.fromkeys(self.data).keys()

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


# The names that a state dict lacks, and those for which a module has no place.
IncompatibleKeys = namedtuple("IncompatibleKeys", "missing_keys unexpected_keys")


def load_state_dict(module: nnx.Module, state: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
    """Writes arrays under PyTorch's names into a module. Raises RuntimeError where names or shapes differ.

    Args:
      strict: whether the names have to be the same, too.
    """
    places = dict(saved_places(module, ordered=not strict))
    given = {k: v for k, v in state.items() if k in places or "batches_tracked" not in k}
    missing, unexpected = [k for k in places if k not in given], [k for k in given if k not in places]
    if not strict:
        places = {k: place for k, place in places.items() if k in given}
        given = {k: state[k] for k in places}
    own = {(k, torch_array(*place).shape) for k, place in places.items()}
    if differ := own ^ {(k, np.shape(v)) for k, v in given.items()}:
        raise RuntimeError(f"Only the module or only the state has {sorted(differ)}")
    for name, (variable, is_kernel) in places.items():
        array = jnp.array(given[name], variable.dtype)
        variable.set_value(jnp.moveaxis(array, (0, 1), (-1, -2)) if is_kernel else array)
    return IncompatibleKeys(missing, unexpected)


def opened(file: Any, mode: str) -> Any:
    """The file of a path, which is closed in the end; one that is open stays so."""
    return nullcontext(file) if hasattr(file, "seek") else open(file, mode)


class ArrayPickler(pickle.Pickler):
    """Writes JAX's arrays as numpy's."""

    def reducer_override(self, x: Any) -> Any:
        return np.asarray(x).__reduce__() if isinstance(x, jax.Array) else NotImplemented


def save_pickle(value: Any, path: Any) -> None:
    """Writes arrays, as numpy's, and state dicts, in dicts and lists with numbers and texts if need be."""
    with opened(path, "wb") as file:
        ArrayPickler(file).dump(value)


def read_pickle(path: Any) -> Any:
    """Reads what `save_pickle` wrote."""
    with opened(path, "rb") as file:
        return pickle.load(file)


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
            hint = "weights_only=False reads it, and may run code"
            raise pickle.UnpicklingError(f"a {module}.{name} is in the file: {hint}")
        return super().find_class(module, name)


@contextmanager
def safe_globals(safe: Iterable[Any]) -> Iterator[None]:
    """Lets files be read that hold these classes, too: each as it is, or with the name that a file has for it."""
    before = dict(PLAIN)
    for one in safe:
        module, name = one[1].rpartition(".")[::2] if isinstance(one, tuple) else (one.__module__, one.__qualname__)
        package = module.partition(".")[0]
        PLAIN[package] = (*PLAIN.get(package, ()), name)
    try:
        yield
    finally:
        PLAIN.clear()
        PLAIN.update(before)


def read_plain_pickle(path: Any) -> Any:
    """Reads what `save_pickle` wrote, if it is arrays, containers, numbers and texts: nothing that could run code."""
    with opened(path, "rb") as file:
        return PlainUnpickler(file).load()


STORAGES = {
    **{"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16"},
    **{"Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8"},
    **{"Bool": "bool", "ComplexFloat": "complex64"},
}


def load_pickle(path: Any, weights_only: bool = True) -> Any:
    """Reads what `save_pickle` or `torch.save` wrote, without PyTorch; tensors become numpy's arrays.

    A file of `torch.save` is a zip archive with a pickle and the bytes of each storage. With `weights_only`, arrays,
    containers, numbers and texts are read, and nothing that could run code.
    """

    def tensor(storage: Any, offset: int, size: Any, stride: Any, *rest: Any) -> Any:
        strides = [step * storage.itemsize for step in stride]
        return np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()

    known: dict[str, Any] = {f"{kind}Storage": jnp.dtype(name) for kind, name in STORAGES.items()}
    known |= {"_rebuild_tensor_v2": tensor, "_rebuild_parameter": lambda data, *rest: data, "Size": tuple}

    class Unpickler(PlainUnpickler if weights_only else pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if not module.startswith("torch"):
                return super().find_class(module, name)
            if name not in known:
                raise pickle.UnpicklingError(f"only PyTorch can read {module}.{name}")
            return known[name]

        def persistent_load(self, place: Any) -> Any:
            _, dtype, key, *_ = place
            return np.frombuffer(archive.read(name.removesuffix(".pkl") + f"/{key}"), dtype)

    with opened(path, "rb") as file:
        start = file.tell()
        if not zipfile.is_zipfile(file):
            file.seek(start)
            return Unpickler(file).load()
        with zipfile.ZipFile(file) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
            return Unpickler(archive.open(name)).load()
