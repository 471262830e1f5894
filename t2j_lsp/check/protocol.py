"""What crosses between the checker and its worker processes: plain data in the frames of `t2j_lsp.child`.

A frame has the tag of the worker, a JSON text, and the bytes of the arrays that the text refers to. Nothing is
pickled, so no object of a user's program can cross, and bytes that a user's program writes to the wrong place are
recognised as garbage.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from t2j_lsp.child import frames
from t2j_lsp.child.frames import ProtocolError

NdArray = npt.NDArray[Any]
Namespace = dict[str, Any]
"""What a program has at its top level."""


@dataclass(frozen=True)
class RawArray:
    """An array of a dtype that numpy lacks (bfloat16, float8): its bits as unsigned integers and its dtype's name."""

    dtype: str
    bits: NdArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.bits.shape


@dataclass(frozen=True)
class Record:
    """An output object with named fields: a dataclass, a namedtuple or a mapping subclass of a user's program."""

    name: str
    fields: dict[str, Plain]


@dataclass(frozen=True)
class Opaque:
    """A value that is no plain data: only the name of its type crosses."""

    type_name: str


@dataclass(frozen=True)
class Raised:
    """A call that raised an error: its type, and the innermost line of the program's own that it went through."""

    type_name: str
    file: str
    line: int


Array = NdArray | RawArray
if TYPE_CHECKING:
    Leaf: TypeAlias = bool | int | float | complex | str | NdArray | RawArray | Opaque | Raised | None
    Plain: TypeAlias = Leaf | Record | list["Plain"] | tuple["Plain", ...] | dict[Any, "Plain"]
else:  # messages read the types of their fields when they are made again, and nothing has to be made of plain data
    Plain = object
"""Plain data: what crosses, and what a program's output is made into. The keys of a dict are leaves."""


def dtype_name(array: Array) -> str:
    """The dtype as torch and jax both spell it: ``float32``, ``bfloat16``, ``bool``, ``int64``..."""
    return array.dtype if isinstance(array, RawArray) else array.dtype.name


def as_float64(array: Array) -> NdArray:
    """The values as float64 (complex128 for complex input); integers beyond 2**53 lose digits."""
    if isinstance(array, RawArray):
        if array.dtype == "bfloat16":
            wide: NdArray = (array.bits.astype(np.uint32) << 16).view(np.float32)
            return wide.astype(np.float64)
        return array.bits.astype(np.float64)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def pack(value: object) -> tuple[bytes, list[bytes]]:
    """The JSON text of ``value`` and the bytes of its arrays."""
    buffers: list[bytes] = []

    def array_node(array: NdArray, dtype: str) -> dict[str, object]:
        buffers.append(np.ascontiguousarray(array).tobytes())
        return {"$": "array", "dtype": dtype, "shape": list(array.shape), "store": array.dtype.str}

    def node(item: object) -> object:
        if item is None or isinstance(item, bool | str):
            return item
        if isinstance(item, int):
            return item if abs(item) < 2**53 else {"$": "int", "v": str(item)}
        if isinstance(item, float):
            return item
        if isinstance(item, complex):
            return {"$": "complex", "v": [item.real, item.imag]}
        if isinstance(item, np.ndarray):
            return array_node(item, item.dtype.name)
        if isinstance(item, np.generic):
            return array_node(np.asarray(item), item.dtype.name)
        if isinstance(item, RawArray):
            return array_node(item.bits, item.dtype)
        if isinstance(item, list):
            return [node(v) for v in item]
        if isinstance(item, tuple):
            return {"$": "tuple", "v": [node(v) for v in item]}
        if isinstance(item, dict):
            return {"$": "dict", "v": [[node(k), node(v)] for k, v in item.items()]}
        if isinstance(item, Record):
            return {"$": "record", "name": item.name, "v": [[k, node(v)] for k, v in item.fields.items()]}
        if isinstance(item, Opaque):
            return {"$": "opaque", "name": item.type_name}
        if isinstance(item, Raised):
            return {"$": "raised", "v": [item.type_name, item.file, item.line]}
        raise TypeError(f"{type(item).__name__} is no plain data")

    return json.dumps(node(value), separators=(",", ":")).encode(), buffers


def unpack(text: bytes, data: bytes) -> Any:
    """The value that ``pack`` took apart. Raises `ProtocolError` for anything malformed."""
    at = 0

    def array(item: dict[str, Any]) -> Array:
        nonlocal at
        store = np.dtype(item["store"])
        shape = tuple(item["shape"])
        size = int(np.prod(shape, dtype=np.int64)) * store.itemsize
        if store.hasobject or at + size > len(data):
            raise ProtocolError("an array is cut off")
        values = np.frombuffer(data, store, count=size // store.itemsize, offset=at).reshape(shape).copy()
        at += size
        return values if item["dtype"] == store.name else RawArray(item["dtype"], values)

    readers: dict[str, Callable[[dict[str, Any]], Any]] = {
        "array": array,
        "int": lambda item: int(item["v"]),
        "complex": lambda item: complex(*item["v"]),
        "tuple": lambda item: tuple(value(v) for v in item["v"]),
        "dict": lambda item: {value(k): value(v) for k, v in item["v"]},
        "record": lambda item: Record(item["name"], {k: value(v) for k, v in item["v"]}),
        "opaque": lambda item: Opaque(item["name"]),
        "raised": lambda item: Raised(*item["v"]),
    }

    def value(item: Any) -> Any:
        if isinstance(item, list):
            return [value(v) for v in item]
        return readers[item["$"]](item) if isinstance(item, dict) else item

    try:
        return value(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(f"a malformed message ({type(error).__name__}: {error})") from error


def frame(tag: bytes, value: object) -> list[bytes]:
    """The byte strings to write for one message; ``tag`` is the worker's 8-byte tag."""
    return frames.frame(tag, *pack(value))


def read_frame(tag: bytes, read: Callable[[int], bytes], limit: int) -> Any:
    """Reads one message with ``read(n)``, which must give exactly ``n`` bytes or raise.

    ``limit`` is the largest number of array bytes accepted.
    """
    return unpack(*frames.read_frame(tag, read, limit))


def plain(value: object, leaf: Callable[[Any], Array | None], depth: int = 0) -> Plain:
    """Turns a program's output into plain data: containers stay, arrays go through ``leaf``, the rest is `Opaque`.

    ``leaf`` answers None for what is no array of its framework.
    """
    if depth > 50:
        return Opaque(type(value).__name__)
    array = leaf(value)
    if array is not None:
        return array
    if value is None or isinstance(value, bool | int | float | complex | str | Opaque):
        return value
    if isinstance(value, Record):
        return Record(value.name, {n: plain(v, leaf, depth + 1) for n, v in value.fields.items()})
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = value._fields
        return Record(type(value).__name__, {f: plain(v, leaf, depth + 1) for f, v in zip(fields, value, strict=True)})
    if isinstance(value, tuple):
        return tuple(plain(v, leaf, depth + 1) for v in value)
    if isinstance(value, list):
        return [plain(v, leaf, depth + 1) for v in value]
    if isinstance(value, Mapping):
        return {_key(k): plain(v, leaf, depth + 1) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value)]
        return Record(type(value).__name__, {n: plain(getattr(value, n, None), leaf, depth + 1) for n in names})
    return Opaque(type(value).__name__)


def _key(key: object) -> str | int | float | bool:
    """A key of a dictionary as plain data; a dtype by the name that both frameworks give it."""
    if isinstance(key, str | int | float | bool):
        return key
    dtype: object = None
    if isinstance(key, type):
        dtype = np.dtype(key) if issubclass(key, np.generic) else getattr(key, "dtype", None)
    return str(dtype if isinstance(dtype, np.dtype) else key).removeprefix("torch.")


def leaves(tree: object, path: str = "") -> list[tuple[str, object]]:
    """The leaves of a plain tree with their paths, in order: ``[("[0].logits", array), ...]``."""
    if isinstance(tree, list | tuple):
        return [leaf for i, item in enumerate(tree) for leaf in leaves(item, f"{path}[{i}]")]
    if isinstance(tree, dict):
        return [leaf for key, item in tree.items() for leaf in leaves(item, f"{path}[{key!r}]")]
    if isinstance(tree, Record):
        return [leaf for key, item in tree.fields.items() for leaf in leaves(item, f"{path}.{key}")]
    return [(path, tree)]
