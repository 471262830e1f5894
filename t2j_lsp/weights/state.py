"""Loads a PyTorch state dict into a converted module, and gives it back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from t2j_lsp.contract import T2JError

from .arrays import read_file, to_array, to_tensor
from .names import Leaf, TorchEntry, torch_names
from .stacks import StackedLayer, restacked

M = TypeVar("M", bound=nnx.Module | dict[str, Any])

_PREFIXES = {"module.": "torch.nn.DataParallel", "_orig_mod.": "torch.compile"}


class WeightsError(T2JError):
    """A state dict does not fit a module. Nothing was loaded.

    Attributes:
        missing: names that the module needs and the state dict lacks.
        unexpected: names in the state dict that the module has no place for.
        misshapen: name to what does not fit: another shape, a dtype that would lose values, or two different values
            for one tied variable.
    """

    def __init__(
        self, owner: str, missing: Iterable[str], unexpected: Iterable[str], misshapen: Mapping[str, str]
    ) -> None:
        self.missing = tuple(missing)
        self.unexpected = tuple(unexpected)
        self.misshapen = dict(misshapen)
        lines = [f"The state dict does not fit {owner}. Nothing was loaded."]
        if self.missing:
            lines += [f"  missing ({len(self.missing)}):", *(f"    {name}" for name in self.missing)]
        if self.unexpected:
            lines += [f"  unexpected ({len(self.unexpected)}):", *(f"    {name}" for name in self.unexpected)]
        if self.misshapen:
            lines.append(f"  does not fit ({len(self.misshapen)}):")
            lines += [f"    {name}: {reason}" for name, reason in self.misshapen.items()]
        for prefix, source in _PREFIXES.items():
            if self.unexpected and all(name.startswith(prefix) for name in self.unexpected):
                lines.append(f"  The names start with {prefix!r}, which {source} adds: remove it from each name.")
        super().__init__("\n".join(lines))


def load_torch_state(
    module: M, state_dict: Mapping[str, Any] | str | os.PathLike[str], *, dtype: Any | None = None
) -> M:
    """Load a PyTorch state dict into a converted module, in place.

    Values keep the state dict's dtype, as ``load_state_dict(assign=True)`` does (64-bit becomes 32-bit unless
    ``jax_enable_x64`` is set), so a bfloat16 checkpoint gives bfloat16 parameters. Where the kinds differ (integers
    for a boolean mask), the value takes the variable's dtype if that loses nothing. ``num_batches_tracked`` is
    accepted and ignored. A variable tied to another needs only one of its names. Values are always copied.

    Args:
        module: a converted ``nnx.Module``, real or from ``nnx.eval_shape``; for target ``jax`` what ``init_net``
            returns: a nested dict of arrays, or that and the dict of the state.
        state_dict: torch tensors, numpy arrays or JAX arrays by name; or the path of a ``.safetensors``, ``.pt``,
            ``.pth`` or ``.bin`` file, of a ``*.index.json``, or of a folder with one of these. Torch is imported only
            for pickled files.
        dtype: cast floating values to this dtype: ``jnp.float32`` to train from a bfloat16 checkpoint.

    Returns:
        ``module``.

    Raises:
        WeightsError: names are missing or unexpected, or values do not fit. All of them are listed, and the module
            is unchanged.
        T2JError: the file can't be read.
    """
    state = read_file(Path(state_dict)) if isinstance(state_dict, str | os.PathLike) else state_dict
    names = torch_names(module)
    present = {id(v) for name, entry in names.items() if name in state for v in entry.variables}
    missing = [
        name
        for name, entry in names.items()
        if name not in state and not all(id(v) in present for v in entry.variables)
    ]
    unexpected = [name for name in state if name not in names]
    misshapen: dict[str, str] = {}
    values: dict[int, tuple[Any, Any, str]] = {}
    for name, entry in names.items():
        if name in state:
            try:
                parts = _fit(entry, to_array(state[name]), dtype)
            except ValueError as error:
                misshapen[name] = str(error)
                continue
            for variable, part in zip(entry.variables, parts, strict=True):
                _, other, first = values.setdefault(id(variable), (variable, part, name))
                if other is not part and not _identical(other, part):
                    misshapen[name] = f"differs from {first}, with which the module ties it"
    if missing or unexpected or misshapen:
        raise WeightsError(type(module).__name__, missing, unexpected, misshapen)
    embeddings = _embeddings_of_their_own_dtype(module)
    stacks: dict[int, list[tuple[StackedLayer, Any]]] = {}
    for variable, part, _ in values.values():
        if isinstance(variable, StackedLayer):
            stacks.setdefault(id(variable.variable), []).append((variable, part))
        else:
            _assign(variable, part)
    for layers in stacks.values():
        _assign(layers[0][0].variable, restacked(layers))
    for embedding in embeddings:
        embedding.dtype = embedding.embedding.dtype
    return module


def torch_state(module: nnx.Module | dict[str, Any], *, tensors: bool = False) -> dict[str, Any]:
    """The PyTorch state dict of a converted module.

    Args:
        module: a converted ``nnx.Module``, or what ``init_net`` returns (target ``jax``): a nested dict of arrays, or
            the pair of that and the state.
        tensors: give torch tensors (this imports torch), ready for ``load_state_dict(strict=True)``; else numpy
            arrays, ready for ``safetensors.numpy.save_file``.

    Returns:
        Every parameter and persistent buffer by torch's name, in torch's layout, copied. ``num_batches_tracked``,
        which Flax does not keep, is 0.
    """
    arrays = {name: np.array(entry.value(), order="C") for name, entry in torch_names(module).items()}
    return {name: to_tensor(array) for name, array in arrays.items()} if tensors else arrays


def _identical(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _fit(entry: TorchEntry, array: Any, dtype: Any | None) -> tuple[Any, ...]:
    """``array`` in the layouts and dtypes of the entry's variables. Raises ValueError with the reason if it can't."""
    if array is None:
        raise ValueError("is not a tensor (of a whole checkpoint, pass the state dict inside it)")
    if not entry.variables:
        return ()
    if tuple(array.shape) != entry.shape:
        raise ValueError(f"has shape {tuple(array.shape)}, the module needs {entry.shape}")
    parts = entry.from_torch(array)
    return tuple(
        _cast(part, variable.get_value().dtype, dtype) for part, variable in zip(parts, entry.variables, strict=True)
    )


def _kind(dtype: Any) -> str:
    kinds = {"floating": jnp.floating, "complex": jnp.complexfloating, "integer": jnp.integer}
    return next((name for name, kind in kinds.items() if jnp.issubdtype(dtype, kind)), "boolean")


def _cast(array: Any, own: Any, floating: Any | None) -> Any:
    kind = _kind(array.dtype)
    target = array.dtype if kind == _kind(own) else own
    if floating is not None and kind == _kind(own) == "floating":
        target = floating
    target = jax.dtypes.canonicalize_dtype(target)
    if target == array.dtype:
        return array
    with np.errstate(invalid="ignore"):
        cast = array.astype(target)
    if kind in ("floating", "complex") and _kind(target) == kind:
        return cast
    # Integers must not wrap, and a change of kind must not round.
    if not np.array_equal(np.asarray(cast).astype(array.dtype), np.asarray(array)):
        raise ValueError(f"is {array.dtype}, and its values do not fit {target}, which the module needs")
    return cast


def _embeddings_of_their_own_dtype(module: nnx.Module | dict[str, Any]) -> list[nnx.Embed]:
    """Embeddings that compute in their table's dtype: ``nnx.Embed`` fixes it when it is made, other layers do not."""
    if not isinstance(module, nnx.Module):
        return []
    layers = (node for _, node in nnx.iter_modules(module) if isinstance(node, nnx.Embed))
    return [layer for layer in layers if layer.dtype == layer.embedding.dtype]


def _assign(variable: nnx.Variable[Any] | Leaf, value: Any) -> None:
    old = variable.get_value()
    # A copy that is there when this returns: JAX may share a numpy array's memory, and copies it when it finds the
    # time, while torch goes on writing to it.
    new = jnp.asarray(np.array(value)) if isinstance(value, np.ndarray) else jnp.array(value, copy=True)
    if isinstance(old, jax.Array) and old.committed:
        new = jax.device_put(new, old.sharding)
    variable.set_value(new)
