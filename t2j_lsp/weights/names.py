"""PyTorch's state dict names for the variables of a converted module.

The walk follows attributes as ``torch.nn.Module.state_dict`` does: a tied variable appears under each of its names,
plain Python lists and dicts hold nothing, and neither do random states, caches and non-persistent buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from t2j_lsp.contract import T2JError

from .layouts import layout, packed_attention
from .stacks import Index, StackedLayer, part_of, stacked_layers, whole_of

Path: TypeAlias = tuple[str | int, ...]
Parameters: TypeAlias = MutableMapping[str, Any] | tuple[MutableMapping[str, Any], MutableMapping[str, Any]]
"""What target ``jax`` holds: nested dicts and lists of arrays, under torch's names and in torch's layouts.

The parameters, or these and the state (buffers), as ``init_net`` returns them.
"""

_NOT_SAVED = (nnx.RngState, nnx.Cache, nnx.Intermediate)


@dataclass(frozen=True)
class Leaf:
    """An array in a nested dict or list, read and replaced as a Variable is."""

    parent: Any
    key: str | int

    def get_value(self) -> Any:
        return self.parent[self.key]

    def set_value(self, value: Any) -> None:
        self.parent[self.key] = value


@dataclass(frozen=True)
class TorchEntry:
    """One entry of a state dict and the variables that hold it.

    There is one variable as a rule, of a stacked layer its part of one; three for the packed ``in_proj_weight`` of
    ``nnx.MultiHeadAttention``; none for ``num_batches_tracked``, which torch saves and Flax does not keep. ``to_torch``
    takes one array for each variable (a value or a gradient, numpy or JAX) and gives torch's array; ``from_torch`` is
    its inverse.
    """

    name: str
    kind: Literal["parameter", "buffer"]
    paths: tuple[Path, ...]
    variables: tuple[nnx.Variable[Any] | StackedLayer | Leaf, ...]
    to_torch: Callable[..., Any]
    from_torch: Callable[[Any], tuple[Any, ...]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that torch's tensor has."""
        blanks = (np.broadcast_to(np.False_, variable.get_value().shape) for variable in self.variables)
        return tuple(self.to_torch(*blanks).shape)

    def value(self) -> Any:
        """The present value in torch's layout, as a numpy or JAX array."""
        return self.to_torch(*(variable.get_value() for variable in self.variables))


def torch_names(module: nnx.Module | Parameters) -> dict[str, TorchEntry]:
    """The state dict entries of a converted module, by torch's name.

    >>> from flax import nnx
    >>> entry = torch_names(nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0))))["0.weight"]
    >>> entry.shape, entry.variables[0].get_value().shape
    ((3, 2), (2, 3))
    """
    if isinstance(module, nnx.Module):
        entries = ModuleNames().entries(module, "", (), ())
    elif isinstance(module, tuple):
        params, state = module
        entries = chain(_tree_entries(params, "", (0,)), _tree_entries(state, "", (1,), "buffer"))
    else:
        entries = _tree_entries(module, "", ())
    names: dict[str, TorchEntry] = {}
    for entry in entries:
        if entry.name in names:
            raise T2JError(
                f"{type(module).__name__} has two variables for the state dict entry {entry.name!r}: "
                f"{names[entry.name].paths} and {entry.paths}. Rename one of the attributes."
            )
        names[entry.name] = entry
    return names


def torch_layout(module: nnx.Module | Parameters, state: Any) -> dict[str, Any]:
    """The arrays of ``state`` under torch's names and in torch's layouts.

    ``state`` has the paths of ``module``'s own state: gradients from ``nnx.grad``, optimizer moments, or a filtered
    ``nnx.state``. A tied variable, which ``state`` holds once, is given under each of its names. Entries that
    ``state`` does not hold (buffers, in a gradient) are left out.
    """
    if not isinstance(module, nnx.Module):
        return {name: entry.value() for name, entry in torch_names(state).items() if entry.variables}
    values = {
        path: leaf.get_value() if isinstance(leaf, nnx.Variable) else leaf
        for path, leaf in nnx.to_flat_state(nnx.State(state))
    }
    names = torch_names(module)
    places: list[tuple[tuple[Any, ...], int]] = []
    places += [(path, id(whole_of(v))) for e in names.values() for path, v in zip(e.paths, e.variables, strict=True)]
    # Flax keeps a shared variable at the first of its paths, which need not be one that torch names.
    places += [(path, id(node)) for path, node in nnx.iter_graph(module) if isinstance(node, nnx.Variable)]
    by_variable = {variable: values[path] for path, variable in places if path in values}
    return {
        name: entry.to_torch(*(part_of(v, by_variable[id(whole_of(v))]) for v in entry.variables))
        for name, entry in names.items()
        if entry.variables and all(id(whole_of(v)) in by_variable for v in entry.variables)
    }


def _in_state_dict(variable: nnx.Variable[Any]) -> bool:
    if isinstance(variable, _NOT_SAVED) or not variable.get_metadata("persistent", True):
        return False
    dtype = getattr(variable.get_value(), "dtype", None)
    return dtype is not None and not jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _attributes(owner: nnx.Pytree) -> Iterator[tuple[str | int, Any]]:
    for key, value in vars(owner).items():
        if not key.startswith("_pytree__"):
            yield int(key) if isinstance(owner, nnx.List) and key.isdigit() else key, value


def _divided(owner: nnx.Pytree, key: str, ancestors: tuple[nnx.Pytree, ...]) -> str | None:
    """PyTorch's name of what is trained in a layer whose weight is divided in each call; None for other variables."""
    around = ancestors[-1] if ancestors else None
    if key == "kernel" and isinstance(around, nnx.SpectralNorm):
        return "weight_orig"
    normed = owner if key == "scale" else around if key == "kernel" else None
    if not isinstance(normed, nnx.WeightNorm) or not hasattr(normed, "parametrized"):
        return None
    number = int(key == "kernel")
    return f"parametrizations.weight.original{number}" if normed.parametrized else ("weight_g", "weight_v")[number]


def _counter(prefix: str) -> TorchEntry:
    return TorchEntry(
        f"{prefix}num_batches_tracked", "buffer", (), (), lambda: np.zeros((), np.int64), lambda array: ()
    )


_NO_STATE = (nnx.Rngs, nnx.RngStream, nnx.Optimizer)
"""What a module may hold, and PyTorch has not in its state dict: generators, and an optimizer of its own."""


class ModuleNames:
    """The walk of one module. What a layer of a stack has of a variable is one object, whatever names it."""

    def __init__(self) -> None:
        self._layers: dict[tuple[int, Index], StackedLayer] = {}

    def entries(
        self, owner: nnx.Pytree, prefix: str, path: Path, ancestors: tuple[nnx.Pytree, ...], index: Index = ()
    ) -> Iterator[TorchEntry]:
        """The entries of a module, or of each layer if it is a stack; ``index`` is its place in stacks around it."""
        count = stacked_layers(owner, index)
        if count is None:
            yield from self._of_module(owner, prefix, path, ancestors, index)
            return
        for number in range(count):
            yield from self._of_module(owner, f"{prefix}{number}.", path, ancestors, (*index, number))

    def _of_module(
        self, owner: nnx.Pytree, prefix: str, path: Path, ancestors: tuple[nnx.Pytree, ...], index: Index
    ) -> Iterator[TorchEntry]:
        if any(owner is ancestor for ancestor in ancestors):
            return
        inside = (*ancestors, owner)
        done: set[tuple[str | int, str]] = set()
        if isinstance(owner, nnx.MultiHeadAttention):
            for entry, keys in self._of_attention(owner, prefix, path, index):
                done.update(keys)
                yield entry
            prefixes = {"out": f"{prefix}out_proj."} if done else {}
        else:
            prefixes = {}
        for key, value in _attributes(owner):
            place = (*path, key)
            if isinstance(value, nnx.Variable):
                if _in_state_dict(value):
                    name = _divided(owner, str(key), ancestors)
                    yield self._of_variable(owner, value, prefix, place, name, index)
            elif isinstance(value, nnx.Pytree) and not isinstance(value, _NO_STATE):
                if (key, "kernel") in done:
                    continue
                listed = isinstance(value, nnx.List | nnx.Dict)
                unnamed = (
                    isinstance(owner, nnx.Sequential) and key == "layers" and listed and not hasattr(owner, "_names")
                )
                wrapped = isinstance(owner, nnx.SpectralNorm | nnx.WeightNorm) and key == "layer_instance"
                child = prefix if unnamed or wrapped else prefixes.get(str(key), f"{prefix}{key}.")
                yield from self.entries(value, child, place, inside, index)
        if isinstance(owner, nnx.BatchNorm | nnx.InstanceNorm):
            counted = getattr(owner, "num_batches_tracked", None)
            if isinstance(getattr(owner, "mean", None), nnx.Variable) and not isinstance(counted, nnx.Variable):
                yield _counter(prefix)

    def _held(self, variable: nnx.Variable[Any], index: Index) -> nnx.Variable[Any] | StackedLayer:
        return self._layers.setdefault((id(variable), index), StackedLayer(variable, index)) if index else variable

    def _of_variable(
        self, owner: object, variable: nnx.Variable[Any], prefix: str, path: Path, name: str | None, index: Index
    ) -> TorchEntry:
        held = self._held(variable, index)
        key, lies_in = str(path[-1]), owner
        if isinstance(owner, nnx.WeightNorm) and key == "scale":
            key, lies_in = "kernel", owner.layer_instance  # which its lengths lie as
        rule = layout(lies_in, key, held.get_value().shape)
        return TorchEntry(
            prefix + (rule.name if name is None else name),
            "parameter" if isinstance(variable, nnx.Param) else "buffer",
            (path,),
            (held,),
            rule.to_torch,
            lambda array: (rule.from_torch(array),),
        )

    def _of_attention(
        self, owner: nnx.MultiHeadAttention, prefix: str, path: Path, index: Index
    ) -> Iterator[tuple[TorchEntry, tuple[tuple[str, str], ...]]]:
        for packed in packed_attention(owner):
            variables = tuple(self._held(getattr(getattr(owner, child), key), index) for child, key in packed.keys)
            paths = tuple((*path, child, key) for child, key in packed.keys)
            name = prefix + packed.name
            yield TorchEntry(name, "parameter", paths, variables, packed.to_torch, packed.from_torch), packed.keys


def _tree_entries(
    tree: Any, prefix: str, path: Path, kind: Literal["parameter", "buffer"] = "parameter"
) -> Iterator[TorchEntry]:
    items: Iterator[tuple[Any, Any]] = iter(tree.items()) if isinstance(tree, Mapping) else enumerate(tree)
    for key, value in items:
        if isinstance(value, MutableMapping | MutableSequence):
            yield from _tree_entries(value, f"{prefix}{key}.", (*path, key), kind)
        elif hasattr(value, "dtype"):
            buffer = key in ("running_mean", "running_var")
            yield TorchEntry(
                f"{prefix}{key}",
                "buffer" if buffer else kind,
                ((*path, key),),
                (Leaf(tree, key),),
                lambda array: array,
                lambda array: (array,),
            )
    if isinstance(tree, Mapping) and "running_mean" in tree and "num_batches_tracked" not in tree:
        yield _counter(prefix)
