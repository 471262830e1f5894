"""Which folders are a project of their own, and which hold far more than one."""

from __future__ import annotations

import os

_HOMES = ("/home", "/Users")
_SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")


def is_too_wide(path: str, home: str) -> bool:
    """Whether a folder holds far more than one project: a home directory or one above it, or one for everybody."""
    real = os.path.realpath(path)
    above = {os.path.realpath(one) for one in (home, "/root", *_HOMES, *_SHARED)}
    return (
        real == os.path.dirname(real)
        or os.path.dirname(real) in _HOMES
        or any(one == real or one.startswith(real + os.sep) for one in above)
    )
