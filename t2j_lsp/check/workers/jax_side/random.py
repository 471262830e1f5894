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
from t2j_lsp.check.workers import host_random

_SAME = 1e-4
"""How far parameters of draws may be apart, by rounding of what they are computed from."""


class Tape:
    """Recorded draws, to be taken again from the start at each call of the model."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
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
            if index in self.taken or entry["kind"] != kind:
                continue
            values = fit(np.asarray(entry["values"]), shape)
            if values is None:
                continue
            self.taken.add(index)
            self._compare(entry["p"], p)
            self._compare_arrays(kind, entry["p"], p)
            return values
        alike = [tuple(np.shape(e["values"])) for e in self.entries if e["kind"] == kind]
        if alike or not self.entries:
            shapes = ", ".join(map(str, alike)) or "none"
            self._report("shape", f"JAX draws {kind} numbers of shape {shape}, and torch {shapes}")
        else:
            kinds = ", ".join(sorted({e["kind"] for e in self.entries}))
            self._report("kind", f"JAX draws {kind} numbers, and torch only {kinds}")
        return None

    def _compare(self, torch_p: Any, p: Any) -> None:
        if torch_p is not None and isinstance(p, int | float) and abs(torch_p - p) > 1e-6:
            self._report("probability", f"JAX keeps with probability {p:g}, and torch with {torch_p:g}")

    def _compare_arrays(self, kind: str, torch_p: Any, p: Any) -> None:
        """Compares parameters of each number, by which the recorded values are not drawn again."""
        if not isinstance(torch_p, np.ndarray) or p is None or isinstance(p, jax.core.Tracer):
            return
        here = fit(np.asarray(p, np.float64), torch_p.shape)
        if here is None or np.allclose(here, torch_p, rtol=_SAME, atol=_SAME, equal_nan=True):
            return
        at = np.unravel_index(np.argmax(np.abs(here - torch_p)), torch_p.shape)
        text = f"JAX draws {kind} numbers with the parameter {here[at]:g}, where torch's is {torch_p[at]:g}"
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
    """Values in another shape: the same, with axes of length 1 more or less, or with the channel axis moved."""
    if values.shape == shape:
        return values
    if [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
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
def replaying(entries: list[dict[str, Any]] | None, seed: int) -> Iterator[Tape | None]:
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


def _float(values: Any, dtype: Any) -> Any:
    return jnp.asarray(values, jax.dtypes.canonicalize_dtype(float if dtype is None else dtype))


def _shape(arguments: dict[str, Any], *others: Any) -> tuple[int, ...]:
    shape = arguments.get("shape")
    if shape is None:
        return tuple(np.broadcast_shapes(*(jnp.shape(o) for o in others)))
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _bernoulli(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("bernoulli", _shape(arguments, arguments["p"]), arguments["p"])
    return None if drawn is None else jnp.asarray(drawn)


def _uniform(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("uniform", _shape(arguments))
    if drawn is None:
        return None
    low, high = arguments["minval"], arguments["maxval"]
    return _float(low + (high - low) * _float(drawn, arguments["dtype"]), arguments["dtype"])


def _normal(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("normal", _shape(arguments))
    return None if drawn is None else _float(drawn, arguments["dtype"])


def _truncated_normal(tape: Tape, arguments: dict[str, Any]) -> Any:
    """By uniform numbers, as torch and JAX draw it."""
    lower, upper = (jnp.asarray(arguments[name], float) for name in ("lower", "upper"))
    drawn = tape.take("uniform", _shape(arguments, lower, upper))
    if drawn is None:
        return None
    low, high = jax.lax.erf(lower / math.sqrt(2)), jax.lax.erf(upper / math.sqrt(2))
    return _float(math.sqrt(2) * jax.lax.erf_inv(low + (high - low) * _float(drawn, None)), arguments["dtype"])


def _orthogonal(tape: Tape, arguments: dict[str, Any]) -> Any:
    """By the QR decomposition of normal numbers, as torch and JAX draw it."""
    rows, columns = arguments["n"], arguments["n"] if arguments["m"] is None else arguments["m"]
    drawn = tape.take("normal", (*_shape(arguments), max(rows, columns), min(rows, columns)))
    if drawn is None:
        return None
    q, r = jnp.linalg.qr(_float(drawn, arguments["dtype"]))
    q *= jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return q.mT if rows < columns else q


def _randint(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("integers", _shape(arguments), (arguments["minval"], arguments["maxval"]))
    return None if drawn is None else jnp.asarray(drawn, jax.dtypes.canonicalize_dtype(arguments["dtype"] or int))


def _permutation(tape: Tape, arguments: dict[str, Any]) -> Any:
    x, axis = arguments["x"], arguments.get("axis", 0)
    size = int(x) if jnp.ndim(x) == 0 else x.shape[axis]
    drawn = tape.take("permutation", (size,))
    if drawn is None:
        return None
    return jnp.asarray(drawn) if jnp.ndim(x) == 0 else jnp.take(x, jnp.asarray(drawn), axis=axis)


def _exponential(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("exponential", _shape(arguments))
    return None if drawn is None else _float(drawn, arguments["dtype"])


def _cauchy(tape: Tape, arguments: dict[str, Any]) -> Any:
    found = tape.take("uniform", _shape(arguments))
    return None if found is None else jnp.tan(jnp.pi * (_float(found, arguments["dtype"]) - 0.5))


def _poisson(tape: Tape, arguments: dict[str, Any]) -> Any:
    found = tape.take("poisson", _shape(arguments, arguments["lam"]), arguments["lam"])
    return None if found is None else jnp.asarray(found, jax.dtypes.canonicalize_dtype(arguments["dtype"] or int))


def _gamma(tape: Tape, arguments: dict[str, Any]) -> Any:
    """Recorded numbers with the derivative by the concentration that torch has: JAX's is more accurate."""
    a, shape = arguments["a"], _shape(arguments, arguments["a"])
    found = tape.take("gamma", shape, a)
    slope = None if found is None else tape.take("slope of gamma", shape)
    if slope is None:
        return None
    return _float(found, arguments["dtype"]) + _float(slope, arguments["dtype"]) * (a - jax.lax.stop_gradient(a))


def _gumbel(tape: Tape, arguments: dict[str, Any]) -> Any:
    drawn = tape.take("exponential", _shape(arguments))
    return None if drawn is None else -jnp.log(_float(drawn, arguments["dtype"]))


def _categorical(tape: Tape, arguments: dict[str, Any]) -> Any:
    """The index of the largest sum of a logit and a Gumbel number, as without a tape; or of several of the largest."""
    logits, axis = jnp.asarray(arguments["logits"]), arguments["axis"]
    axis -= logits.ndim if axis >= 0 else 0
    batch = [n for i, n in enumerate(logits.shape) if i != axis % logits.ndim]
    shape = _shape(arguments, jnp.zeros(batch))
    before = shape[: len(shape) - len(batch)]
    if not arguments["replace"]:
        drawn = tape.take("exponential", logits.shape)
        if drawn is None:
            return None
        scores = jnp.moveaxis(logits - jnp.log(_float(drawn, logits.dtype)), axis, -1)
        return jnp.moveaxis(jax.lax.top_k(scores, math.prod(before))[1], -1, 0).reshape(shape)
    whole = list(shape[len(shape) - len(batch) :])
    whole.insert(axis % logits.ndim, logits.shape[axis])
    drawn = tape.take("exponential", tuple(whole) if math.prod(before) == 1 else (*before, *whole))
    if drawn is None:
        return None
    numbers = _float(drawn, logits.dtype).reshape((*before, *whole))
    return jnp.argmax(logits - jnp.log(numbers), axis)


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
    uses = {
        "bernoulli": _bernoulli,
        "uniform": _uniform,
        "normal": _normal,
        "truncated_normal": _truncated_normal,
        "orthogonal": _orthogonal,
        "randint": _randint,
        "permutation": _permutation,
        "exponential": _exponential,
        "cauchy": _cauchy,
        "poisson": _poisson,
        "gamma": _gamma,
        "gumbel": _gumbel,
        "categorical": _categorical,
    }
    host_random.install(_host)
    jax.lax.scan = _scan(jax.lax.scan)
    for name, use in uses.items():
        setattr(jax.random, name, _replaced(name, use)(getattr(jax.random, name)))
