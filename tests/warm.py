"""Workers that stay warm for the commands of a test file, which each would start their own."""

from __future__ import annotations

import inspect
from typing import Any

from t2j_lsp.check.process.pool import Pool


class WarmPool(Pool):
    """A pool that is only given back when it is closed."""

    in_use = False

    def close(self) -> None:
        self.in_use = False


class WarmPools:
    """Takes the place of `Pool`: pools by their settings. A context manager, which ends them."""

    def __init__(self) -> None:
        self._pools: dict[str, WarmPool] = {}

    def __call__(self, *positional: Any, **named: Any) -> Pool:
        given = inspect.signature(Pool).bind(*positional, **named)
        given.apply_defaults()
        pool = self._pools.setdefault(str(given.arguments), WarmPool(*given.args, **given.kwargs))
        assert not pool.in_use
        pool.in_use = True
        return pool

    def __enter__(self) -> WarmPools:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools.values():
            Pool.close(pool)
        assert not any(pool.in_use for pool in self._pools.values()), "a command did not end its workers"
