"""Measures how long a call takes: the median of calls one after the other."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

LEAST, MOST, SECONDS = 5, 100, 0.5
"""Calls at least and at most, and the time after which no further one is made."""


def median_of(call: Callable[[Any], Any], prepare: Callable[[], Any]) -> dict[str, float]:
    """Seconds of the first call and the median of further ones; what ``prepare`` makes for each is not measured."""
    times: list[float] = []
    until = None
    while len(times) <= LEAST or (len(times) < MOST and until is not None and time.monotonic() < until):
        given = prepare()
        start = time.perf_counter()
        call(given)
        times.append(time.perf_counter() - start)
        until = until or time.monotonic() + SECONDS
    return {"first": times[0], "median": statistics.median(times[1:]), "calls": len(times)}
