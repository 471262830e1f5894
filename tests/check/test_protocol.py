"""Plain data crosses unchanged, and nothing else is taken for it."""

from __future__ import annotations

import io
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from t2j_lsp.check.protocol import (  # fmt: skip
    Opaque,
    RawArray,
    Record,
    as_float64,
    frame,
    leaves,
    pack,
    plain,
    read_frame,
    unpack,
)
from t2j_lsp.child.frames import HEAD, MAGIC, ProtocolError

TAG = b"12345678"
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.complex_numbers(allow_nan=False)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def through(value: Any) -> Any:
    data = io.BytesIO(b"".join(frame(TAG, value)))

    def read(count: int) -> bytes:
        result = data.read(count)
        if len(result) < count:
            raise ProtocolError("cut off")
        return result

    return read_frame(TAG, read, 1 << 30)


@given(trees)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert repr(through(value)) == repr(value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_arrays_come_back_as_they_were(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    result = through({"a": [array, array.T]})["a"]
    assert result[0].dtype == array.dtype
    assert result[0].shape == shape
    np.testing.assert_array_equal(result[1], array.T)


def test_bfloat16_crosses_as_its_bits() -> None:
    result = through(RawArray("bfloat16", np.array([0x3F80, 0xC040], np.uint16)))
    np.testing.assert_array_equal(as_float64(result), [1.0, -3.0])


def test_an_object_of_a_program_does_not_cross() -> None:
    with pytest.raises(TypeError):
        pack(object())


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Output:
    logits: Any
    hidden: Any = None


def test_outputs_of_programs_become_plain() -> None:
    value = Output(Pair(np.zeros(2), 3), OrderedDict(a=[1, object()]))
    result = plain(value, lambda v: v if isinstance(v, np.ndarray) else None)
    assert isinstance(result, Record)
    paths = [path for path, _ in leaves(result)]
    assert paths == [".logits.left", ".logits.right", ".hidden['a'][0]", ".hidden['a'][1]"]
    assert leaves(result)[-1][1] == Opaque("object")
    assert through(result).fields["logits"].fields["right"] == 3


@pytest.mark.parametrize("key", [np.dtype("float32"), np.float32, torch.float32, jnp.float32, jnp.dtype("float32")])
def test_a_dtype_is_a_key_by_the_name_that_both_frameworks_have(key: Any) -> None:
    assert plain({key: 1, torch.float64: 2, (1, 2): 3}, lambda v: None) == {"float32": 1, "float64": 2, "(1, 2)": 3}


def test_an_output_that_holds_itself_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert leaves(plain(loop, lambda v: None))


@pytest.mark.parametrize(
    "data",
    [
        b"noise" * 20,
        HEAD.pack(MAGIC, b"87654321", 2, 0) + b"{}",
        HEAD.pack(MAGIC, TAG, 3, 0) + b"{]}",
        HEAD.pack(MAGIC, TAG, 2, 1 << 40) + b"{}",
        HEAD.pack(MAGIC, TAG, 10, 0) + b'{"$":"no"}',
    ],
    ids=["noise", "another tag", "no JSON", "too large", "an unknown node"],
)
def test_garbage_is_no_message(data: bytes) -> None:
    stream = io.BytesIO(data)
    with pytest.raises(ProtocolError):
        read_frame(TAG, stream.read, 1 << 30)


def test_an_array_longer_than_its_bytes_is_garbage() -> None:
    text, buffers = pack(np.zeros(4))
    with pytest.raises(ProtocolError):
        unpack(text, b"".join(buffers)[:-1])
