"""Standard streams that only their owner can reach."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO


def guard_stdio() -> tuple[BinaryIO, BinaryIO]:
    """The real standard input and output, which from now on only their caller has.

    Descriptor 0 reads nothing and 1 writes to standard error, so that a stray print, a child or a C library can't
    get between two messages.
    """
    source, sink = os.dup(0), os.dup(1)
    for descriptor in (source, sink):
        os.set_inheritable(descriptor, False)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(source, "rb"), os.fdopen(sink, "wb", buffering=0)
