"""What torch's drawing functions give while a tape runs, from the tensor that they gave and their arguments."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch

from t2j_lsp.check.protocol import NdArray


class Tape(Protocol):
    """Where numbers come from."""

    def generator(self, kind: str, shape: tuple[int, ...]) -> np.random.Generator: ...

    def add(self, kind: str, values: Any, p: Any = None) -> NdArray: ...

    def uniform(self, shape: tuple[int, ...], kind: str = "uniform") -> NdArray: ...

    def normal(self, shape: tuple[int, ...]) -> NdArray: ...

    def chances(self, kind: str, shape: tuple[int, ...]) -> NdArray: ...

    def by_parameters(self, kind: str, shape: tuple[int, ...], parameters: Any) -> NdArray: ...


def argument(args: tuple[Any, ...], kwargs: dict[str, Any], index: int, name: str, default: Any) -> Any:
    return args[index] if len(args) > index else kwargs.get(name, default)


def array(value: Any) -> Any:
    return value.detach().cpu().double().numpy() if isinstance(value, torch.Tensor) else value


def uniform(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    return tape.uniform(tuple(tensor.shape))


def uniform_between(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    low, high = argument(args, kwargs, 1, "from", 0.0), argument(args, kwargs, 2, "to", 1.0)
    return np.asarray(low + (high - low) * tape.uniform(tuple(tensor.shape)).astype(np.float64))


def standard_normal(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    return tape.normal(tuple(tensor.shape))


def normal_in_place(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    mean, std = argument(args, kwargs, 1, "mean", 0.0), argument(args, kwargs, 2, "std", 1.0)
    return np.asarray(mean + std * tape.normal(tuple(tensor.shape)).astype(np.float64))


def normal_of(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    mean, std = argument(args, kwargs, 0, "mean", 0.0), argument(args, kwargs, 1, "std", 1.0)
    return np.asarray(array(mean) + array(std) * tape.normal(tuple(tensor.shape)).astype(np.float64))


def integers(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    bounds = [a for a in args if isinstance(a, int) and not isinstance(a, bool)][:2]
    low = kwargs.get("low", kwargs.get("from", bounds[0] if len(bounds) == 2 else 0))
    high = kwargs.get("high", kwargs.get("to", bounds[-1] if bounds else 1))
    shape = tuple(tensor.shape)
    return tape.add("integers", tape.generator("integers", shape).integers(low, high, shape))


def integers_in_place(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    """``random_`` without bounds draws what the dtype holds: those are torch's own."""
    if len(args) < 2 and kwargs.get("to") is None:
        return np.asarray(array(tensor))
    return integers(tape, tensor, args, kwargs)


def permutation(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    return tape.add("permutation", tape.generator("permutation", (tensor.numel(),)).permutation(tensor.numel()))


def bernoulli(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    given = argument(args, kwargs, 1, "p", None)
    probability = array(args[0] if given is None else given)
    drawn = np.asarray(tape.chances("bernoulli", tuple(tensor.shape)) < probability)
    return tape.add("bernoulli", drawn, np.broadcast_to(np.float32(probability), drawn.shape).copy())


def bernoulli_in_place(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    probability = array(argument(args, kwargs, 1, "p", 0.5))
    return tape.add("bernoulli", np.asarray(tape.chances("bernoulli", tuple(tensor.shape)) < probability))


def exponential(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    rate = argument(args, kwargs, 1, "lambd", 1.0)
    draws = -np.log(tape.chances("exponential", tuple(tensor.shape))).astype(np.float32)
    return np.asarray(tape.add("exponential", draws).astype(np.float64) / rate)


def cauchy(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    """By uniform numbers, as on JAX's side."""
    median, sigma = argument(args, kwargs, 1, "median", 0.0), argument(args, kwargs, 2, "sigma", 1.0)
    return np.asarray(median + sigma * np.tan(np.pi * (tape.uniform(tuple(tensor.shape)).astype(np.float64) - 0.5)))


def poisson(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    return tape.by_parameters("poisson", tuple(tensor.shape), array(argument(args, kwargs, 0, "input", None)))


def binomial(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    parameters = (array(argument(args, kwargs, i, name, None)) for i, name in enumerate(("count", "prob")))
    return tape.by_parameters("binomial", tuple(tensor.shape), np.stack(np.broadcast_arrays(*parameters)))


def geometric(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    """By uniform numbers, as on JAX's side."""
    chance = tape.uniform(tuple(tensor.shape)).astype(np.float64)
    return np.asarray(np.ceil(np.log(chance) / np.log1p(-argument(args, kwargs, 1, "p", None))))


def log_normal(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    mean, std = argument(args, kwargs, 1, "mean", 1.0), argument(args, kwargs, 2, "std", 2.0)
    return np.asarray(np.exp(mean + std * tape.normal(tuple(tensor.shape)).astype(np.float64)))


def multinomial(tape: Tape, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NdArray:
    """Indices of each row, by exponentials as torch and JAX choose them."""
    weights = array(argument(args, kwargs, 0, "input", None))
    count, again = tensor.shape[-1], bool(argument(args, kwargs, 2, "replacement", False))
    shape = (count, *weights.shape) if again and count > 1 else weights.shape
    draws = tape.add("exponential", -np.log(tape.chances("exponential", shape)).astype(np.float32))
    scores = weights / draws.astype(np.float64)
    if again and count > 1:
        return np.moveaxis(np.argmax(scores, -1), 0, -1)
    return np.argsort(-scores, -1, kind="stable")[..., :count]
