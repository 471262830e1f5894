"""Compares what two programs computed: structure, dtypes, shapes, the places of NaN and infinity, and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from t2j_lsp.check.messages import Tree
from t2j_lsp.check.protocol import Array, NdArray, Opaque, Raised, RawArray, Record, as_float64, dtype_name

EXACT = 1e-9
"""Largest difference allowed in float64, as a part of the tensor's scale. Right conversions stay near 1e-14."""
SINGLE = 1e-6
"""The same where JAX has float32 though torch was made to compute in float64: quotients of 32-bit integers are such."""
FLOOR = 1e-13
"""Differences below this are rounding whatever the scale."""
GROUP = 1e-3
"""A tensor's scale is at least this part of the largest in its group: the gradient of a bias before a normalisation
is zero but for rounding, and its own size is no scale to measure by."""

Allowed = Callable[[str, NdArray, float], float | NdArray]
"""The largest error allowed for a leaf, by its name, torch's values and the scale of its group: one for all elements
or one for each."""


@dataclass(frozen=True)
class Difference:
    """Where two observations part. ``name`` is the observation's; ``what`` says what differs, with numbers.

    ``kind`` is ``structure``, ``shape``, ``dtype``, ``error``, ``nan``, ``integer`` or ``value``.
    """

    name: str
    what: str
    kind: str

    def __str__(self) -> str:
        return f"{self.name} {self.what}"


@dataclass
class Comparison:
    """The result over many observations. Errors are the largest over all of them."""

    observed: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    max_abs_err: float | None = None
    max_rel_err: float | None = None

    def record(self, absolute: float, relative: float) -> None:
        """Takes note of one leaf's errors."""
        self.max_abs_err = max(self.max_abs_err or 0.0, absolute)
        self.max_rel_err = max(self.max_rel_err or 0.0, relative)

    def fail(self, name: str, what: str, kind: str) -> None:
        """Takes note of a difference."""
        self.differences.append(Difference(name, what, kind))


def exact(name: str, values: NdArray, group: float) -> float:
    """The bound on meaning, in float64."""
    return max(EXACT * scale_of(values, group), FLOOR)


def scale_of(values: NdArray, group: float = 0.0) -> float:
    """The largest finite magnitude, or a small part of the group's."""
    finite = np.abs(values[np.isfinite(values)])
    return max(float(finite.max()) if finite.size else 0.0, GROUP * group)


def pairs(torch: Tree, jax: Tree, path: str = "") -> list[tuple[str, Tree, Tree]] | str:
    """The leaves of two outputs side by side, or what differs in their structure.

    Lists and tuples are alike, and so are records and dictionaries with the same names, and records and tuples.
    """
    if isinstance(torch, Record) and isinstance(jax, list | tuple):
        torch = list(torch.fields.values())
    if isinstance(jax, Record) and isinstance(torch, list | tuple):
        jax = list(jax.fields.values())
    torch, jax = _fields(torch), _fields(jax)
    where = f"part {path}" if path else "the output"
    if isinstance(torch, list | tuple) and isinstance(jax, list | tuple):
        if len(torch) != len(jax):
            return f"{where} has {len(torch)} elements in torch and {len(jax)} in JAX"
        nested = [pairs(t, j, f"{path}[{i}]") for i, (t, j) in enumerate(zip(torch, jax, strict=True))]
    elif isinstance(torch, dict) and isinstance(jax, dict):
        if set(torch) != set(jax):
            return f"{where} has the keys {_keys(torch)} in torch and {_keys(jax)} in JAX"
        nested = [pairs(torch[k], jax[k], f"{path}[{k!r}]") for k in torch]
    elif isinstance(torch, list | tuple | dict) or isinstance(jax, list | tuple | dict):
        return f"{where} is {_what(torch)} in torch and {_what(jax)} in JAX"
    else:
        return [(path, torch, jax)]
    wrong = next((f for f in nested if isinstance(f, str)), None)
    return wrong if wrong is not None else [leaf for f in nested if not isinstance(f, str) for leaf in f]


def _fields(tree: Tree) -> Tree:
    return {k: v for k, v in tree.fields.items() if v is not None} if isinstance(tree, Record) else tree


def _keys(tree: Mapping[object, object]) -> str:
    return ", ".join(map(repr, tree)) or "(none)"


def _outcome(value: Tree) -> str:
    return f"raises {value.type_name}" if isinstance(value, Raised) else f"gives {_what(value)}"


def _what(value: Tree) -> str:
    if is_array(value):
        return f"an array of shape {tuple(value.shape)}"
    if isinstance(value, list | tuple):
        return f"a sequence of {len(value)}"
    if isinstance(value, Opaque):
        return f"a {value.type_name}"
    return "a dictionary" if isinstance(value, dict) else f"{value!r}"


def is_array(value: Tree) -> TypeGuard[Array]:
    """Whether a leaf is an array."""
    return isinstance(value, np.ndarray | RawArray)


def arrays_of(tree: Tree, numbers: bool = False) -> dict[str, Array]:
    """The array leaves of an observation by path; with ``numbers`` its floats, too."""
    leaves = pairs(tree, tree)
    if isinstance(leaves, str):
        return {}
    floats = {path: np.asarray(leaf) for path, leaf, _ in leaves if numbers and isinstance(leaf, float)}
    return floats | {path: leaf for path, leaf, _ in leaves if is_array(leaf)}


def kind_of(array: Array) -> str:
    """``bool``, ``integer``, ``floating`` or ``complex``: what a dtype must agree in whatever its width."""
    name = dtype_name(array)
    if name == "bool":
        return "bool"
    return "integer" if name.startswith(("int", "uint")) else "complex" if name.startswith("complex") else "floating"


def compare(
    name: str, torch: Tree, jax: Tree, result: Comparison, group: float = 0.0, allowed: Allowed = exact
) -> None:
    """Compares one observation and adds what is found to ``result``.

    ``group`` is the scale of the observation's group.
    """
    if isinstance(torch, Raised) or isinstance(jax, Raised):
        if not (isinstance(torch, Raised) and isinstance(jax, Raised)):
            result.fail(name, f"{_outcome(torch)} in torch, and {_outcome(jax)} in JAX", "error")
        return
    paired = pairs(torch, jax)
    if isinstance(paired, str):
        result.fail(name, paired, "structure")
        return
    for path, left, right in paired:
        _leaf(f"{name}{path}", left, right, result, group, allowed)


def _leaf(name: str, left: Tree, right: Tree, result: Comparison, group: float, allowed: Allowed) -> None:
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        return
    if left is None or right is None or isinstance(left, str) or isinstance(right, str):
        if type(left) is not type(right) or _by_kind(left) != _by_kind(right):
            result.fail(name, f"is {_what(left)} in torch and {_what(right)} in JAX", "structure")
        return
    scalar = not (is_array(left) and is_array(right))
    a: Array = left if is_array(left) else np.asarray(left)
    b: Array = right if is_array(right) else np.asarray(right)
    if tuple(a.shape) != tuple(b.shape):
        result.fail(name, f"has shape {tuple(a.shape)} in torch and {tuple(b.shape)} in JAX", "shape")
    elif kind_of(a) != kind_of(b) and not scalar:
        result.fail(name, f"is {dtype_name(a)} in torch and {dtype_name(b)} in JAX", "dtype")
    elif kind_of(a) in ("bool", "integer") and kind_of(b) in ("bool", "integer"):
        _integers(name, _integers_of(a), _integers_of(b), result)
    else:
        if dtype_name(a) == "float64" and dtype_name(b) == "float32":
            allowed = _at_least(SINGLE, allowed)
        _floats(name, as_float64(a), as_float64(b), result, group, allowed)


_FIRST_DEVICE = re.compile(r"\b(cpu|cuda):0\b")
_DTYPE = re.compile(r"\b(?:torch\.)?(u?int|float|complex)(?:32|64|128)\b|\btorch\.(\w+)")


def _by_kind(leaf: Tree) -> Tree:
    """A text with the first device of a kind as PyTorch calls it, and dtypes by their kind: their width may differ.

    In JAX the device is ``cpu:0`` and the dtype ``float32``, in PyTorch ``cpu`` and ``torch.float32``.
    """
    return _DTYPE.sub(r"\1\2", _FIRST_DEVICE.sub(r"\1", leaf)) if isinstance(leaf, str) else leaf


def _at_least(part: float, allowed: Allowed) -> Allowed:
    """A bound that is no less than a part of the scale."""
    return lambda name, values, group: np.maximum(allowed(name, values, group), part * scale_of(values, group))


def _integers_of(array: Array) -> NdArray:
    """The values; of a dtype that numpy lacks (int4), the bits that hold them."""
    return array.bits if isinstance(array, RawArray) else array


def _integers(name: str, left: NdArray, right: NdArray, result: Comparison) -> None:
    wrong = (left.astype(np.int64) != right.astype(np.int64)) & ~_no_integers(left) & ~_both_largest(left, right)
    if wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        detail = f"{left[at]} in torch and {right[at]} in JAX{_index(at)}"
        result.fail(name, f"differs in {int(wrong.sum())} of {wrong.size} elements: {detail}", "integer")
    result.record(0.0, 0.0)


def _no_integers(values: NdArray) -> NdArray:
    """Where torch's integers stand for floats that are none, or too large: what these become isn't defined."""
    lowest = np.iinfo(values.dtype).min if values.dtype in (np.int32, np.int64) else None
    floats: NdArray = np.zeros(values.shape, bool) if lowest is None else values == lowest
    return floats


def _both_largest(left: NdArray, right: NdArray) -> NdArray:
    """Where both sides are the largest number of their types, of which JAX's is half as wide."""
    if left.dtype != np.int64 or right.dtype != np.int32:
        return np.zeros(left.shape, bool)
    largest: NdArray = (left == np.iinfo(left.dtype).max) & (right == np.iinfo(right.dtype).max)
    return largest


def _floats(name: str, a: NdArray, b: NdArray, result: Comparison, group: float, allowed: Allowed) -> None:
    tests: list[tuple[Callable[[NdArray], NdArray], str]] = [(np.isnan, "NaN")]
    if name.startswith("gradient of "):  # where torch has none, there is nothing to agree with
        b = np.where(np.isfinite(a), b, a)
        tests = [(_not_finite, "not finite")]
    elif a.dtype.kind == "f" and b.dtype.kind == "f":
        tests += [(np.isposinf, "infinite"), (np.isneginf, "minus infinity")]
    for test, word in tests:
        wrong = test(a) != test(b)
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            side = "torch" if test(a)[at] else "JAX"
            count = int(wrong.sum())
            result.fail(name, f"is {word} only in {side}, in {count} of {wrong.size} elements{_index(at)}", "nan")
            return
    finite = np.isfinite(a)
    if not finite.any():
        return
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(finite, np.abs(a - b), 0.0)
    worst, scale = float(error.max()), scale_of(a, group)
    beyond = error > allowed(name, a, group)
    relative = worst / scale if scale > 0 else (float("inf") if beyond.any() else 0.0)
    if np.isfinite(relative):
        result.record(worst, relative)
    if beyond.any():
        at = np.unravel_index(int(np.where(beyond, error, 0.0).argmax()), error.shape)
        detail = f"{a[at]:.6g} in torch and {b[at]:.6g} in JAX{_index(at)}"
        share = f"by {relative:.2g} of its scale " if np.isfinite(relative) else ""
        count = int(beyond.sum())
        result.fail(name, f"differs {share}in {count} of {a.size} elements: {detail}", "value")


def _not_finite(values: NdArray) -> NdArray:
    mask: NdArray = ~np.isfinite(values)
    return mask


def _index(at: tuple[np.intp, ...]) -> str:
    return f" at [{', '.join(str(int(i)) for i in at)}]" if at else ""
