"""What a check refuses to a program, as a reason for a verdict `unchecked`."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping

from t2j_lsp.check.messages import Failure
from t2j_lsp.check.process.worker import Kind

_SIDES: dict[Kind, str] = {"torch": "PyTorch code", "jax": "converted code"}
_REFUSING = tuple(os.strerror(code) for code in (errno.EROFS, errno.EACCES, errno.EPERM))
"""As native code says it, too."""


def refused(error: Failure) -> bool:
    """Whether an error of a worker says that a program may not do what it does."""
    if "PermissionError" in error.bases:
        return True
    native = "OSError" in error.bases or error.type == "RuntimeError" or "JaxRuntimeError" in error.bases
    return native and any(text in error.message for text in _REFUSING)


def refusal(kind: Kind, text: str) -> str:
    """The reason for a verdict `unchecked`."""
    return f"a check refuses what the {_SIDES[kind]} does: {text}"


def one_sided(met: Mapping[Kind, Collection[str]]) -> str | None:
    """The reason where one side met a refusal that the other did not."""
    sides: tuple[tuple[Kind, Kind], ...] = (("torch", "jax"), ("jax", "torch"))
    for kind, other in sides:
        for text in met[kind]:
            if text not in met[other]:
                return refusal(kind, text)
    return None
