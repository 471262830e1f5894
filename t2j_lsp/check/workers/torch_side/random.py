"""Common random numbers, torch's side: while a tape runs, torch's draws come from numpy and are recorded.

The functions that draw are replaced once, at the worker's start, before any user code could take a reference to
them; without a tape they do what they always did. The same seed gives the same draws in float32 and float64, which
torch's own generator does not. What is not replaced here (LSTM's inner dropout) stays random, and is found by calling
twice with other seeds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import dataset

from t2j_lsp.check.workers import host_random

_EXACT_BITS = 24


class Tape:
    """The draws of one call, in order: ``{"kind", "values", "p"}``, of which ``p`` is what they were drawn with."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.entries: list[dict[str, Any]] = []

    def begin(self, target: torch.Tensor | None) -> None:
        """A draw begins, into a tensor that was there before where one is given."""

    def matrix(self, target: torch.Tensor, draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Draws a matrix into a tensor, of which the first axis is its rows."""
        draw(target)

    def generator(self, kind: str, shape: tuple[int, ...]) -> np.random.Generator:
        """Gives the numbers of the next draw."""
        return self.rng

    def add(self, kind: str, values: Any, p: Any = None) -> Any:
        self.entries.append({"kind": kind, "values": values, "p": p})
        return values

    def uniform(self, shape: tuple[int, ...], kind: str = "uniform") -> Any:
        """Numbers in (0, 1), exact in float32."""
        draws = (self.generator(kind, shape).integers(0, 2**_EXACT_BITS, shape) + 0.5) / 2**_EXACT_BITS
        return self.add(kind, draws.astype(np.float32).clip(2.0**-25, 1 - 2.0**-24))

    def normal(self, shape: tuple[int, ...]) -> Any:
        return self.add("normal", np.asarray(self.generator("normal", shape).standard_normal(shape), np.float32))

    def keep(self, shape: tuple[int, ...], probability: float) -> Any:
        """A mask that is True with a probability."""
        return self.add("bernoulli", np.asarray(self.chances("bernoulli", shape) < probability), probability)

    def by_parameters(self, kind: str, shape: tuple[int, ...]) -> np.random.Generator | None:
        """Gives draws that depend on parameters in more than scale and place; None for torch's own."""
        return self.generator(kind, shape)

    def chances(self, kind: str, shape: tuple[int, ...]) -> Any:
        """Numbers in [0, 1), which are not recorded themselves."""
        return self.generator(kind, shape).random(shape)


_tape: Tape | None = None
_host_draws = True
"""Whether Python's and numpy's draws come from the tape, too."""


@contextmanager
def recording(seed: int) -> Iterator[Tape]:
    """Draws come from a new tape; Python's and numpy's global generators are seeded too."""
    global _tape
    outer, _tape = _tape, Tape(seed)
    host_random.seed(seed)
    try:
        yield _tape
    finally:
        _tape = outer


@contextmanager
def drawing(tape: Tape) -> Iterator[None]:
    """Draws of torch come from a tape; those of Python and numpy stay their own."""
    global _tape, _host_draws
    outer, _tape, _host_draws = _tape, tape, False
    try:
        yield
    finally:
        _tape, _host_draws = outer, True


def _put(tensor: torch.Tensor, values: Any) -> torch.Tensor:
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(np.array(values)))
    return tensor


def _filled(draw: Callable[[Tape, torch.Tensor, tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """Wraps a function whose result has the right shape and dtype, and then gets the tape's values."""

    def decorate(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> torch.Tensor:
            if _tape is None:
                return original(*args, **kwargs)
            tensor = original(*args, **kwargs)
            _tape.begin(tensor if original.__name__.endswith("_") else None)
            return _put(tensor, draw(_tape, tensor, args, kwargs))

        return call

    return decorate


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], index: int, name: str, default: Any) -> Any:
    return args[index] if len(args) > index else kwargs.get(name, default)


def _array(value: Any) -> Any:
    return value.detach().cpu().double().numpy() if isinstance(value, torch.Tensor) else value


def _uniform(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return tape.uniform(tuple(tensor.shape))


def _uniform_between(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    low, high = _argument(args, kwargs, 1, "from", 0.0), _argument(args, kwargs, 2, "to", 1.0)
    return low + (high - low) * tape.uniform(tuple(tensor.shape)).astype(np.float64)


def _orthogonal(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def call(tensor: torch.Tensor, gain: float = 1, generator: torch.Generator | None = None) -> torch.Tensor:
        if _tape is not None:
            _tape.matrix(tensor, lambda into: original(into, gain, generator))
            return tensor
        return original(tensor, gain, generator)

    return call


def _truncated_normal(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """By uniform numbers, as JAX draws it; PyTorch draws until all numbers are between the bounds."""

    @functools.wraps(original)
    def call(
        tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
        generator: torch.Generator | None = None,
    ) -> torch.Tensor:  # fmt: skip
        if _tape is None:
            return original(tensor, mean, std, a, b, generator)
        low, high = (math.erf((bound - mean) / (std * math.sqrt(2))) for bound in (a, b))
        with torch.no_grad():
            return tensor.uniform_(low, high).erfinv_().mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)

    return call


def _standard_normal(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return tape.normal(tuple(tensor.shape))


def _normal_in_place(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mean, std = _argument(args, kwargs, 1, "mean", 0.0), _argument(args, kwargs, 2, "std", 1.0)
    return mean + std * tape.normal(tuple(tensor.shape)).astype(np.float64)


def _normal_of(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mean, std = _argument(args, kwargs, 0, "mean", 0.0), _argument(args, kwargs, 1, "std", 1.0)
    return _array(mean) + _array(std) * tape.normal(tuple(tensor.shape)).astype(np.float64)


def _integers(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bounds = [a for a in args if isinstance(a, int) and not isinstance(a, bool)][:2]
    low = kwargs.get("low", kwargs.get("from", bounds[0] if len(bounds) == 2 else 0))
    high = kwargs.get("high", kwargs.get("to", bounds[-1] if bounds else 1))
    shape = tuple(tensor.shape)
    return tape.add("integers", tape.generator("integers", shape).integers(low, high, shape))


def _integers_in_place(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``random_`` without bounds draws what the dtype holds: those are torch's own."""
    if len(args) < 2 and kwargs.get("to") is None:
        return _array(tensor)
    return _integers(tape, tensor, args, kwargs)


def _permutation(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return tape.add("permutation", tape.generator("permutation", (tensor.numel(),)).permutation(tensor.numel()))


def _bernoulli(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = _argument(args, kwargs, 1, "p", None)
    probability = _array(args[0] if given is None else given)
    drawn = np.asarray(tape.chances("bernoulli", tuple(tensor.shape)) < probability)
    return tape.add("bernoulli", drawn, np.broadcast_to(np.float32(probability), drawn.shape).copy())


def _bernoulli_in_place(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    probability = _array(_argument(args, kwargs, 1, "p", 0.5))
    return tape.add("bernoulli", np.asarray(tape.chances("bernoulli", tuple(tensor.shape)) < probability))


def _exponential(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rate = _argument(args, kwargs, 1, "lambd", 1.0)
    draws = -np.log(tape.chances("exponential", tuple(tensor.shape))).astype(np.float32)
    return tape.add("exponential", draws).astype(np.float64) / rate


def _cauchy(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """By uniform numbers, as on JAX's side."""
    median, sigma = _argument(args, kwargs, 1, "median", 0.0), _argument(args, kwargs, 2, "sigma", 1.0)
    return median + sigma * np.tan(np.pi * (tape.uniform(tuple(tensor.shape)).astype(np.float64) - 0.5))


def _poisson(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    generator = tape.by_parameters("poisson", tuple(tensor.shape))
    if generator is None:
        return tensor.cpu().numpy()
    rate = np.asarray(_array(_argument(args, kwargs, 0, "input", None)), np.float32)
    return tape.add("poisson", generator.poisson(rate), rate)


def _gamma(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Gamma numbers, recorded with torch's derivative by the concentration, an approximation to some 3e-4."""

    @functools.wraps(original)
    def call(concentration: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        shape = tuple(concentration.shape)
        numbers = None if _tape is None else _tape.by_parameters("gamma", shape)
        if _tape is None or numbers is None:
            return original(concentration, generator)
        given = np.asarray(_array(concentration), np.float32)
        drawn = np.asarray(np.maximum(numbers.standard_gamma(given), 1e-30), np.float32)
        values = torch.from_numpy(_tape.add("gamma", drawn, given))
        values = values.to(concentration)
        slope = torch._standard_gamma_grad(concentration.detach(), values)
        _tape.add("slope of gamma", slope.cpu().double().numpy())
        return values + slope * (concentration - concentration.detach())

    return call


def _multinomial(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Indices of each row, by exponentials as torch and JAX choose them."""
    weights = _array(_argument(args, kwargs, 0, "input", None))
    count, again = tensor.shape[-1], bool(_argument(args, kwargs, 2, "replacement", False))
    shape = (count, *weights.shape) if again and count > 1 else weights.shape
    draws = tape.add("exponential", -np.log(tape.chances("exponential", shape)).astype(np.float32))
    scores = weights / draws.astype(np.float64)
    if again and count > 1:
        return np.moveaxis(np.argmax(scores, -1), 0, -1)
    return np.argsort(-scores, -1, kind="stable")[..., :count]


def _dropout(channels: bool, batched: int) -> Any:
    """Dropout by a recorded mask; ``channels`` drops whole channels of inputs with at least ``batched`` axes."""

    def decorate(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(original)
        def call(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
            if _tape is None or not training or not 0 < p <= 1:
                return original(input, p, training, inplace)
            shape = tuple(input.shape)
            if channels:
                kept = 2 if input.ndim >= batched else 1
                shape = shape[:kept] + (1,) * (input.ndim - kept)
            mask = torch.from_numpy(_tape.keep(shape, 1 - p)).to(input.device)
            scale = mask.to(input.dtype) / (1 - p) if p < 1 else torch.zeros_like(mask, dtype=input.dtype)
            return input.mul_(scale) if inplace else input * scale

        return call

    return decorate


def _attention(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def call(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> torch.Tensor:  # fmt: skip
        if _tape is None or dropout_p == 0:
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        # The form in torch's documentation, with dropout by the recorded mask.
        if enable_gqa:
            repeats = query.size(-3) // key.size(-3)
            key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
        scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        elif attn_mask is not None:
            scores = scores + attn_mask
        return F.dropout(scores.softmax(-1), dropout_p) @ value

    return call


def _host(kind: str, shape: tuple[int, ...]) -> Any:
    """A draw of Python's or numpy's global generator."""
    if _tape is None or not _host_draws:
        return None
    return _tape.normal(shape) if kind == "normal" else _tape.uniform(shape)


def install() -> None:
    """Replaces torch's drawing functions. Called once, before user code is loaded."""
    host_random.install(_host)
    replacements: list[tuple[Any, str, Any]] = [
        (torch, "rand", _filled(_uniform)),
        (torch, "rand_like", _filled(_uniform)),
        (torch, "randn", _filled(_standard_normal)),
        (torch, "randn_like", _filled(_standard_normal)),
        (torch, "normal", _filled(_normal_of)),
        (torch, "randint", _filled(_integers)),
        (torch, "randint_like", _filled(_integers)),
        (torch.Tensor, "random_", _filled(_integers_in_place)),
        (torch, "randperm", _filled(_permutation)),
        (torch, "bernoulli", _filled(_bernoulli)),
        (torch.Tensor, "bernoulli", _filled(_bernoulli)),
        (torch, "multinomial", _filled(_multinomial)),
        (torch.Tensor, "multinomial", _filled(_multinomial)),
        (torch.Tensor, "bernoulli_", _filled(_bernoulli_in_place)),
        (torch.Tensor, "uniform_", _filled(_uniform_between)),
        (torch.Tensor, "normal_", _filled(_normal_in_place)),
        (torch.nn.init, "orthogonal_", _orthogonal),
        (torch.nn.init, "trunc_normal_", _truncated_normal),
        (torch.Tensor, "exponential_", _filled(_exponential)),
        (torch.Tensor, "cauchy_", _filled(_cauchy)),
        (torch, "poisson", _filled(_poisson)),
        (torch, "_standard_gamma", _gamma),
        (F, "dropout", _dropout(False, 0)),
        (F, "dropout1d", _dropout(True, 3)),
        (F, "dropout2d", _dropout(True, 3)),
        (F, "dropout3d", _dropout(True, 5)),
        (F, "scaled_dot_product_attention", _attention),
    ]
    for owner, name, decorate in replacements:
        setattr(owner, name, decorate(getattr(owner, name)))
    setattr(dataset, "randperm", torch.randperm)  # noqa: B010 - of `random_split`, and not for mypy
