"""Common random numbers of whole programs, JAX's side: in compiled functions, they are drawn at each run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from t2j_lsp.check.workers.programs.parametric import BY_PARAMETERS
from t2j_lsp.check.workers.programs.streams import Streams

from .random import Tape

_INITIALIZERS = "jax._src.nn.initializers"
_SWITCH = 1e-4
"""Seconds after which a draw in a compiled function, which another thread makes, gets its turn."""


class ProgramTape(Tape):
    """Draws that each side works out for itself (see `programs.streams`)."""

    def __init__(self, streams: Streams) -> None:
        super().__init__([])
        self.streams = streams

    def use(self, key: Any) -> None:
        """Keys are not compared: a program makes too many draws."""
        self.uses += 1

    @property
    def replays(self) -> bool:
        """Draws in a scan would be taken for the same in each of its steps: they have no inputs."""
        return True

    def take(self, kind: str, shape: tuple[int, ...], p: Any = None) -> Any | None:
        """The next draw of a kind and shape. ``p``: a mask's probability, integers' bounds, parameters."""
        if kind == "slope of gamma":
            return jax.lax.random_gamma_grad(*(jnp.asarray(values, float) for values in p))
        drawer = self.streams.drawer()
        if kind in BY_PARAMETERS:
            return self._at_each_run(
                lambda given: BY_PARAMETERS[kind](self.streams.generator(kind, shape, drawer), given), shape, float, p
            )
        if kind == "integers":
            if p is None or any(isinstance(bound, jax.core.Tracer) or np.ndim(bound) for bound in p):
                return None
            low, high = (int(bound) for bound in p)
            return self._at_each_run(
                lambda: self.streams.generator(kind, shape, drawer).integers(low, high, shape), shape, np.int64
            )
        dtype = np.int64 if kind == "permutation" else np.float32
        drawn = self._at_each_run(lambda: self.streams.draw(kind, shape, drawer), shape, dtype)
        return drawn < p if kind == "bernoulli" else drawn

    def _at_each_run(self, draw: Callable[..., Any], shape: tuple[int, ...], dtype: Any, *given: Any) -> Any:
        """The draw now, or in a compiled function, each time that it runs."""
        if _is_eager():
            return draw(*map(np.asarray, given))
        held = jax.dtypes.canonicalize_dtype(dtype)
        form = jax.ShapeDtypeStruct(shape, held)  # type: ignore[no-untyped-call]
        return io_callback(lambda *now: np.asarray(draw(*map(np.asarray, now)), held), form, *given, ordered=True)


def _is_eager() -> bool:
    core = importlib.import_module("jax._src.core")
    return bool(core.trace_state_clean())


class _Random(ModuleType):
    """``jax.random`` for JAX's initializers: as replaced, but in constructors, where torch's parameters are loaded."""

    def __init__(self, original: ModuleType, streams: Streams) -> None:
        super().__init__("random")
        self._original, self._streams = original, streams

    def __getattr__(self, name: str) -> Any:
        home = self._original if self._streams.constructing else jax.random
        return getattr(home, name, None) or getattr(self._original, name)


@contextmanager
def initializing(streams: Streams) -> Iterator[None]:
    """JAX's initializers draw from the streams in this context. Without their module, they draw their own."""
    try:
        home = importlib.import_module(_INITIALIZERS)
    except ImportError:
        yield
        return
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        with mock.patch.object(home, "random", _Random(home.random, streams)):
            yield
    finally:
        sys.setswitchinterval(interval)
