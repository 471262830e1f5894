"""What crosses a pipe between a process and its child: a head, a JSON text, and bytes that the text is about.

The head has a tag, by which bytes that something else wrote into the pipe are recognised, and both lengths. It takes
the standard library alone: the workers of a check read frames in the user's interpreters.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MAGIC = b"t2j\x01"
HEAD = struct.Struct("<4s8sIQ")
MAX_TEXT = 256 * 1024 * 1024
MAX_DATA = 4 * 1024**3
NO_TAG = bytes(8)
"""The tag of a child that runs none of the user's code."""


class ProtocolError(Exception):
    """The bytes received are no frame of ours: the other side wrote garbage, or was cut off."""


def frame(tag: bytes, text: bytes, data: Sequence[bytes] = ()) -> list[bytes]:
    """The byte strings to write for one message."""
    return [HEAD.pack(MAGIC, tag, len(text), sum(map(len, data))), text, *data]


def lengths(tag: bytes, head: bytes, limit: int = MAX_DATA) -> tuple[int, int]:
    """The lengths of a frame's text and data. Raises ProtocolError where this is no head, or more than is accepted."""
    magic, its_tag, text, data = HEAD.unpack(head)
    if magic != MAGIC or its_tag != tag:
        raise ProtocolError("something else than a message was written to the worker's pipe")
    if text > MAX_TEXT or data > limit:
        raise ProtocolError(f"a message of {text + data} bytes is over the limit")
    return text, data


def read_frame(tag: bytes, read: Callable[[int], bytes], limit: int = MAX_DATA) -> tuple[bytes, bytes]:
    """The text and the data of one frame, with ``read(n)``, which must give exactly ``n`` bytes or raise."""
    text, data = lengths(tag, read(HEAD.size), limit)
    return read(text), read(data)


@dataclass(frozen=True)
class Codec:
    """How the arguments and the value of a request become a frame's data."""

    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]


JSON = Codec(lambda value: json.dumps(value, separators=(",", ":")).encode(), json.loads)
PICKLE = Codec(lambda value: pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), pickle.loads)
"""For records of ours; never for what a user's program or a model made."""


def message(about: dict[str, Any], data: bytes = b"") -> bytes:
    """A frame as one byte string: what it is about, and its data."""
    return b"".join(frame(NO_TAG, json.dumps(about).encode(), [data]))
