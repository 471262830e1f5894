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
from torch.distributions import dirichlet
from torch.utils.data import dataset

from t2j_lsp.check.messages import RecordedDraw
from t2j_lsp.check.messages import Tape as RecordedTape
from t2j_lsp.check.protocol import NdArray
from t2j_lsp.check.workers import host_random
from t2j_lsp.check.workers.programs.parametric import BY_PARAMETERS

from . import draws

_EXACT_BITS = 24


class Tape:
    """The draws of one call, in order."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.entries: RecordedTape = []

    def begin(self, target: torch.Tensor | None) -> None:
        """A draw begins, into a tensor that was there before where one is given."""

    def matrix(self, target: torch.Tensor, draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Draws a matrix into a tensor, of which the first axis is its rows."""
        draw(target)

    def generator(self, kind: str, shape: tuple[int, ...]) -> np.random.Generator:
        """Gives the numbers of the next draw."""
        return self.rng

    def add(self, kind: str, values: NdArray, p: Any = None) -> NdArray:
        self.entries.append(RecordedDraw(kind, values, p))
        return values

    def uniform(self, shape: tuple[int, ...], kind: str = "uniform") -> NdArray:
        """Numbers in (0, 1), exact in float32."""
        numbers = (self.generator(kind, shape).integers(0, 2**_EXACT_BITS, shape) + 0.5) / 2**_EXACT_BITS
        return self.add(kind, numbers.astype(np.float32).clip(2.0**-25, 1 - 2.0**-24))

    def normal(self, shape: tuple[int, ...]) -> NdArray:
        return self.add("normal", np.asarray(self.generator("normal", shape).standard_normal(shape), np.float32))

    def keep(self, shape: tuple[int, ...], probability: float) -> NdArray:
        """A mask that is True with a probability."""
        return self.add("bernoulli", np.asarray(self.chances("bernoulli", shape) < probability), probability)

    def by_parameters(self, kind: str, shape: tuple[int, ...], parameters: Any) -> NdArray:
        """Numbers that depend on parameters in more than scale and place."""
        return self.add(kind, BY_PARAMETERS[kind](self.generator(kind, shape), parameters), parameters)

    def slope_of_gamma(self, concentration: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The derivative by the concentration: torch's, an approximation to some 3e-4."""
        slope = torch._standard_gamma_grad(concentration, values)
        self.add("slope of gamma", slope.cpu().double().numpy())
        return slope

    def chances(self, kind: str, shape: tuple[int, ...]) -> NdArray:
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
    """Wraps a function whose result has the right shape and dtype, and then gets the tape's values.

    With a default device, torch looks the function up by its name and calls what it finds: the wrapper once more, which
    must not draw again.
    """

    def decorate(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        within = False

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> torch.Tensor:
            nonlocal within
            if _tape is None or within:
                return original(*args, **kwargs)
            within = True
            try:
                tensor = original(*args, **kwargs)
            finally:
                within = False
            _tape.begin(tensor if original.__name__.endswith("_") else None)
            return _put(tensor, draw(_tape, tensor, args, kwargs))

        return call

    return decorate


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


def _gamma(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Gamma numbers, with their derivative by the concentration."""

    @functools.wraps(original)
    def call(concentration: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        if _tape is None:
            return original(concentration, generator)
        fixed = concentration.detach()
        values = torch.from_numpy(_tape.by_parameters("gamma", tuple(fixed.shape), draws.array(fixed))).to(fixed)
        return values + _tape.slope_of_gamma(fixed, values) * (concentration - fixed)

    return call


def _dirichlet(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """By gamma numbers and with their derivative, as JAX draws it; that of PyTorch is another one, as right."""

    @functools.wraps(original)
    def call(concentration: torch.Tensor) -> torch.Tensor:
        if _tape is None:
            return original(concentration)
        parts = torch._standard_gamma(concentration)
        return parts / parts.sum(-1, keepdim=True)

    return call


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


_SATURATION = 1.7580993408473766
"""Minus SELU's limit, which alpha dropout puts in."""


def _alpha_dropout(channels: bool) -> Any:
    def decorate(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(original)
        def call(input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> torch.Tensor:
            if _tape is None or not training or not 0 < p < 1:
                return original(input, p, training, inplace)
            shape = (*input.shape[:2], *(1,) * (input.ndim - 2)) if channels else tuple(input.shape)
            mask = torch.from_numpy(_tape.keep(shape, 1 - p)).to(input.device)
            scale = ((_SATURATION**2 * p + 1) * (1 - p)) ** -0.5
            result = torch.where(mask, input, -_SATURATION) * scale + _SATURATION * scale * p
            return input.copy_(result) if inplace else result

        return call

    return decorate


def _rrelu(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def call(
        input: torch.Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, *rest: Any
    ) -> torch.Tensor:
        if _tape is None or not training:
            return original(input, lower, upper, training, *rest)
        slopes = torch.from_numpy(lower + (upper - lower) * _tape.uniform(tuple(input.shape)).astype(np.float64))
        result = torch.where(input >= 0, input, input * slopes.to(input))
        return input.copy_(result) if original.__name__.endswith("_") else result

    return call


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
        (torch, "rand", _filled(draws.uniform)),
        (torch, "rand_like", _filled(draws.uniform)),
        (torch, "randn", _filled(draws.standard_normal)),
        (torch, "randn_like", _filled(draws.standard_normal)),
        (torch, "normal", _filled(draws.normal_of)),
        (torch, "randint", _filled(draws.integers)),
        (torch, "randint_like", _filled(draws.integers)),
        (torch.Tensor, "random_", _filled(draws.integers_in_place)),
        (torch, "randperm", _filled(draws.permutation)),
        (torch, "bernoulli", _filled(draws.bernoulli)),
        (torch.Tensor, "bernoulli", _filled(draws.bernoulli)),
        (torch, "multinomial", _filled(draws.multinomial)),
        (torch.Tensor, "multinomial", _filled(draws.multinomial)),
        (torch.Tensor, "bernoulli_", _filled(draws.bernoulli_in_place)),
        (torch.Tensor, "uniform_", _filled(draws.uniform_between)),
        (torch.Tensor, "normal_", _filled(draws.normal_in_place)),
        (torch.nn.init, "orthogonal_", _orthogonal),
        (torch.nn.init, "trunc_normal_", _truncated_normal),
        (torch.Tensor, "exponential_", _filled(draws.exponential)),
        (torch.Tensor, "cauchy_", _filled(draws.cauchy)),
        (torch.Tensor, "geometric_", _filled(draws.geometric)),
        (torch.Tensor, "log_normal_", _filled(draws.log_normal)),
        (torch, "poisson", _filled(draws.poisson)),
        (torch, "binomial", _filled(draws.binomial)),
        (torch, "_standard_gamma", _gamma),
        (dirichlet._Dirichlet, "apply", _dirichlet),
        (torch, "rrelu", _rrelu),
        (torch, "rrelu_", _rrelu),
        (F, "alpha_dropout", _alpha_dropout(False)),
        (F, "feature_alpha_dropout", _alpha_dropout(True)),
        (F, "dropout", _dropout(False, 0)),
        (F, "dropout1d", _dropout(True, 3)),
        (F, "dropout2d", _dropout(True, 3)),
        (F, "dropout3d", _dropout(True, 5)),
        (F, "scaled_dot_product_attention", _attention),
    ]
    for owner, name, decorate in replacements:
        setattr(owner, name, decorate(getattr(owner, name)))
    setattr(dataset, "randperm", torch.randperm)  # noqa: B010 - of `random_split`, and not for mypy
