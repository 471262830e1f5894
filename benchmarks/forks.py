"""Code that runs in a fork of this process, which has loaded what it needs: a framework takes seconds to import."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

FRAMEWORKS = ("torch.optim", "torch.utils.data", "torch._dynamo", "jax.numpy", "optax", "flax.nnx")


def load() -> None:
    """Import both frameworks. Neither computes anything here: threads don't go with a fork."""
    for name in FRAMEWORKS:
        importlib.import_module(name)
    gc.freeze()


def in_fork(function: Callable[[], Any], name: str, timeout: float) -> Any:
    """What a function gives, through JSON, in a folder of its own; None where it fails or takes too long."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            os.close(reading)
            _run(function, name, timeout, folder, writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as pipe:
            made = pipe.read()
        os.waitpid(child, 0)
    return json.loads(made) if made else None


def _run(function: Callable[[], Any], name: str, timeout: float, folder: str, writing: int) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        signal.setitimer(signal.ITIMER_REAL, timeout)
        os.chdir(folder)
        sys.stderr.flush()
        said, quiet = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        try:
            made = json.dumps(function())
        except BaseException as error:  # noqa: BLE001 (also a program that exits)
            os.write(said, f"{name}: {type(error).__name__}: {error}\n".encode())
        else:
            with open(writing, "w", encoding="utf-8") as pipe:
                pipe.write(made)
            status = 0
    finally:
        os._exit(status)
