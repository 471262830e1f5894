"""Common random numbers, JAX's side: while a tape runs, JAX's draws are those that torch's side recorded.

``install`` replaces functions of ``jax.random`` before flax is imported, since flax keeps references to them. A draw
takes the next recorded one of its kind whose shape fits; a draw that finds none is random, and is reported.
"""

from __future__ import annotations

import functools
import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t2j_lsp.check.messages import DrawKind, DrawProblem
from t2j_lsp.check.messages import Tape as RecordedTape
from t2j_lsp.check.workers import host_random

from .draws import DRAWS

_SAME = 1e-4
"""How far parameters of draws may be apart, by rounding of what they are computed from."""


class Tape:
    """Recorded draws, to be taken again from the start at each call of the model."""

    def __init__(self, entries: RecordedTape) -> None:
        self.entries = entries
        self.taken: set[int] = set()
        self.problems: list[DrawProblem] = []
        self.keys: list[Any] = []
        self.uses = 0
        """How many draws asked it."""

    @property
    def replays(self) -> bool:
        """Whether it has something to give."""
        return bool(self.entries)

    def copied(self) -> Tape:
        """The tape as it is now."""
        tape = Tape(self.entries)
        tape.taken, tape.keys, tape.problems = set(self.taken), [*self.keys], [*self.problems]
        return tape

    def reset(self, to: Tape) -> None:
        """Takes back what was drawn since it was copied."""
        self.taken, self.keys, self.problems = to.taken, to.keys, to.problems

    def rewind(self) -> None:
        self.taken.clear()
        self.keys.clear()

    def use(self, key: Any) -> None:
        """Notes that a draw is made with a key. Two draws with one key are not independent, as torch's are."""
        self.uses += 1
        if any(_same_key(key, other) for other in self.keys):
            self._report("reuse", "JAX draws twice with the same key", traceback.extract_stack())
        self.keys.append(key)

    def take(self, kind: str, shape: tuple[int, ...], p: Any = None) -> Any | None:
        """The next unused draw of a kind that fits, in the wanted shape; None if there is none."""
        for index, entry in enumerate(self.entries):
            if index in self.taken or entry.kind != kind:
                continue
            values = fit(np.asarray(entry.values), shape)
            if values is None:
                continue
            self.taken.add(index)
            self._compare(entry.p, p)
            self._compare_arrays(kind, entry.p, p)
            return values
        alike = [tuple(np.shape(e.values)) for e in self.entries if e.kind == kind]
        if alike or not self.entries:
            shapes = ", ".join(map(str, alike)) or "none"
            self._report("shape", f"JAX draws {kind} numbers of shape {shape}, and torch {shapes}")
        else:
            kinds = ", ".join(sorted({e.kind for e in self.entries}))
            self._report("kind", f"JAX draws {kind} numbers, and torch only {kinds}")
        return None

    def _compare(self, torch_p: Any, p: Any) -> None:
        if torch_p is not None and isinstance(p, int | float) and abs(torch_p - p) > 1e-6:
            self._report("probability", f"JAX keeps with probability {p:g}, and torch with {torch_p:g}")

    def _compare_arrays(self, kind: str, torch_p: Any, p: Any) -> None:
        """Compares parameters of each number, by which the recorded values are not drawn again."""
        if not isinstance(torch_p, np.ndarray) or p is None or isinstance(p, jax.core.Tracer):
            return
        drawn_with = fit(np.asarray(p, np.float64), torch_p.shape)
        if drawn_with is None or np.allclose(drawn_with, torch_p, rtol=_SAME, atol=_SAME, equal_nan=True):
            return
        at = np.unravel_index(np.argmax(np.abs(drawn_with - torch_p)), torch_p.shape)
        text = f"JAX draws {kind} numbers with the parameter {drawn_with[at]:g}, where torch's is {torch_p[at]:g}"
        self._report("parameter", text)

    def _report(self, kind: DrawKind, text: str, stack: Sequence[traceback.FrameSummary] = ()) -> None:
        if all(p.text != text for p in self.problems):
            frames = [(f.filename, f.lineno or 0, f.name) for f in stack]
            self.problems.append(DrawProblem(kind, text, frames))


def _same_key(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, jax.core.Tracer) or isinstance(other, jax.core.Tracer):
        return False
    a, b = (jax.random.key_data(k) if jnp.issubdtype(k.dtype, jax.dtypes.prng_key) else k for k in (one, other))
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def fit(values: Any, shape: tuple[int, ...]) -> Any | None:
    """Values in another shape: the same, with axes of length 1 more or less, or with the channel axis moved.

    Or with batch and heads in one axis, as PyTorch's attention draws where it gives its weights.
    """
    if values.shape == shape:
        return values
    if [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
        return values.reshape(shape)
    if abs(values.ndim - len(shape)) == 1 and min(values.ndim, len(shape)) >= 3:
        if values.shape[-2:] == tuple(shape[-2:]) and values.size == math.prod(shape):
            return values.reshape(shape)
    if values.ndim == len(shape) >= 3:
        for source, target in ((1, -1), (-1, 1), (-3, -1)):
            moved = np.moveaxis(values, source, target)
            if moved.shape == shape:
                return moved
    return None


_tape: Tape | None = None
_host_draws = True
"""Whether Python's and numpy's draws come from the tape, too."""


@contextmanager
def replaying(entries: RecordedTape | None, seed: int) -> Iterator[Tape | None]:
    """Draws come from the entries; with None, they are JAX's own."""
    global _tape
    outer, _tape = _tape, None if entries is None else Tape(entries)
    host_random.seed(seed)
    try:
        yield _tape
    finally:
        _tape = outer


@contextmanager
def drawing(tape: Tape) -> Iterator[None]:
    """Draws of JAX come from a tape; those of Python and numpy stay their own."""
    global _tape, _host_draws
    outer, _tape, _host_draws = _tape, tape, False
    try:
        yield
    finally:
        _tape, _host_draws = outer, True


def rewind(seed: int) -> None:
    """Starts the tape again, at the start of each call of a model."""
    if _tape is not None:
        _tape.rewind()
    host_random.seed(seed)


def _replaced(kind: str, use: Callable[[Tape, dict[str, Any]], Any]) -> Callable[[Any], Any]:
    def decorate(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if _tape is None:
                return original(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            _tape.use(bound.arguments["key"])
            drawn = use(_tape, bound.arguments)
            return original(*args, **kwargs) if drawn is None else drawn

        return call

    return decorate


def _draws(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a function draws what the tape gives."""
    if _tape is None or not _tape.replays:
        return False
    uses, before = _tape.uses, _tape.copied()
    jax.eval_shape(function, *arguments)
    _tape.reset(before)
    return _tape.uses > uses


def _scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """``jax.lax.scan``, in Python where its function draws: it is traced once, and each step has draws of its own."""

    @functools.wraps(original)
    def scan(
        f: Callable[..., Any],
        init: Any,
        xs: Any = None,
        length: int | None = None,
        reverse: bool = False,
        **options: Any,
    ) -> Any:
        steps = range(length if xs is None and length is not None else jax.tree.leaves(xs)[0].shape[0])
        if not steps or not _draws(f, init, jax.tree.map(lambda leaf: leaf[0], xs)):
            return original(f, init, xs, length=length, reverse=reverse, **options)
        carry, outputs = init, []
        for step in reversed(steps) if reverse else steps:
            carry, output = f(carry, jax.tree.map(lambda leaf: leaf[step], xs))  # noqa: B023 - called at once
            outputs.append(output)
        outputs = outputs[::-1] if reverse else outputs
        return carry, jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)

    return scan


def _host(kind: str, shape: tuple[int, ...]) -> Any:
    """A draw of Python's or numpy's global generator."""
    return None if _tape is None or not _host_draws else _tape.take(kind, shape)


def install() -> None:
    """Replaces JAX's drawing functions. Called once, before flax is imported."""
    host_random.install(_host)
    jax.lax.scan = _scan(jax.lax.scan)
    for name, use in DRAWS.items():
        setattr(jax.random, name, _replaced(name, use)(getattr(jax.random, name)))
