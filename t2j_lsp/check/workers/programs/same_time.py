"""Clocks for programs: each look is a hundredth of a second after the last, so that times printed are the same."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_START, _TICK = 1_700_000_000, 0.01
_NAMES = ("time", "perf_counter", "monotonic", "process_time")


@contextmanager
def same_time(files: set[str]) -> Iterator[None]:
    """Looks at the clock from ``files`` are counted; those of libraries are real."""
    looks = 0
    originals = {name: getattr(time, name) for base in _NAMES for name in (base, f"{base}_ns")}

    def counted(name: str, original: Callable[[], Any]) -> Callable[[], Any]:
        @functools.wraps(original)
        def look() -> Any:
            nonlocal looks
            if sys._getframe(1).f_code.co_filename not in files:
                return original()
            looks += 1
            now = looks * _TICK + (_START if name.startswith("time") else 0)
            return int(now * 1e9) if name.endswith("_ns") else now

        return look

    for name, original in originals.items():
        setattr(time, name, counted(name, original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(time, name, original)
