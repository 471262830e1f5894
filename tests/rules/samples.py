"""Where the sample calls of a rule come from: PyTorch's own operator database, which its maintainers test PyTorch with.

``torch.testing._internal.common_methods_invocations.op_db`` holds hundreds of sample inputs for nearly every operator.
It is internal, so the version of torch that the tests run with is pinned. Names it lacks are in ``more_samples``.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
import types
import unittest
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from t2j_lsp.translate.rule.record import Rule

from .more_samples import MORE


@dataclass(frozen=True)
class Sample:
    """The arguments of one call; tensors are float64, int64, bool or complex128."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def leaves(self) -> Iterator[Any]:
        yield from _leaves([*self.args, *self.kwargs.values()])


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        else:
            yield value


OWN_SAMPLES = (
    *("torch.where", "torch.einsum", "torch.polygamma", "torch.special.polygamma"),
    *("torch.nn.functional.embedding", "torch.nn.functional.embedding_bag"),
    *("torch.linalg.eigh", "torch.linalg.eigvalsh", "torch.linalg.pinv", "torch.linalg.eig"),
)
"""Operators whose records wrap the function: other order of arguments, matrices made symmetric first."""


NO_TIES = {
    "torch.topk": "which of several equal elements it takes is not stated, and differs",
    "torch.kthvalue": "which of several equal elements it takes is not stated, and differs",
    "torch.nn.functional.ctc_loss": "rounded log probabilities do not sum to 1",
    "torch.digamma": "infinite at 0 and -1, where PyTorch's gradient is some huge number",
    "torch.Tensor.polygamma": "infinite at whole numbers, where PyTorch has some huge number",
    "torch.special.zeta": "PyTorch's poles are NaN or infinite in no order",
    "torch.nn.functional.poisson_nll_loss": "counts are not negative: PyTorch has NaN gradients there",
    "torch.special.ndtri": "infinite at 0 and 1; the gradient there is infinite in PyTorch and 0 in JAX",
    "torch.mvlgamma": "infinite at whole numbers; the gradient there is infinite in PyTorch and NaN in JAX",
    "torch.special.multigammaln": "as torch.mvlgamma",
}
"""Rules that are not driven with whole numbers, and why."""


@functools.cache
def operators() -> dict[str, list[Any]]:
    """PyTorch's operator records by qualified name: ``torch.add``, ``torch.Tensor.add``, ..."""
    # torch.testing asks for this package only to derive its own test classes.
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stand_in)
    from torch.testing._internal.common_methods_invocations import op_db

    by_name: dict[str, list[Any]] = {}
    for op in op_db:
        names = [op.name, *(alias.name for alias in op.aliases)]
        for name in names:
            name = name.removesuffix(".default").removeprefix("torch.")
            for qualified in (f"torch.{name}", f"torch.Tensor.{name}"):
                if qualified not in OWN_SAMPLES:
                    by_name.setdefault(qualified, []).append(op)
    return by_name


def samples(rule: Rule, limit: int) -> list[Sample]:
    """Up to ``limit`` calls that differ in their options, and one more of whole numbers: with zeros and ties."""
    ops = {id(op): op for name in rule.names() for op in operators().get(name, [])}
    given = [sample for name in rule.names() for sample in MORE.get(name, [])]
    chosen = [Sample(args, kwargs) for args, kwargs in given]
    share = max(1, limit // max(1, len(ops)))
    for op in ops.values():
        chosen += _different(_of(op), share)
    chosen = chosen[: max(limit, len(given))]
    if rule.name in NO_TIES:
        return chosen
    return chosen + [s for s in map(_whole_numbers, chosen[:1]) if s is not None]


def seed(number: int) -> None:
    """Seeds all that samples draw from. ``torch.manual_seed`` would note down its stack for each kind of card."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def _of(op: Any) -> Iterator[Sample]:
    seed(0)
    dtype = next(
        (d for d in (torch.float64, torch.int64, torch.bool, torch.complex128) if op.supports_dtype(d, "cpu")), None
    )
    if dtype is None:
        return
    for sample in itertools.islice(seeded(op.sample_inputs_func(op, "cpu", dtype, False)), 40):
        yield Sample((sample.input, *sample.args), dict(sample.kwargs))


def seeded(drawn: Iterable[Any]) -> Iterator[Any]:
    """What ``op.sample_inputs`` does, but for looking through the stack for one of PyTorch's own tests.

    With all modules that are loaded here, that takes longer than a rule's samples take to be run.
    """
    from torch.testing._internal.common_utils import SEED

    todo = iter(drawn)
    while True:
        seed(SEED)
        try:
            yield next(todo)
        except StopIteration:
            return


def _different(drawn: Iterator[Sample], limit: int) -> list[Sample]:
    """Samples that use other options than those before, then the rest; small, and without empty tensors."""
    chosen: dict[tuple[Any, ...], Sample] = {}
    rest: list[Sample] = []
    for sample in filter(_usable, drawn):
        key = (*map(_kind, sample.args), *sorted((k, _kind(v)) for k, v in sample.kwargs.items()))
        if chosen.setdefault(key, sample) is not sample:
            rest.append(sample)
        if len(chosen) == 4 * limit:
            break
    first, *others = chosen.values() or [None]
    ranked = sorted(others, key=lambda s: -len(s.kwargs) - len(s.args))
    return ([first] if first is not None else []) + [*ranked, *rest][: limit - 1]


def _usable(sample: Sample) -> bool:
    tensors = [t for t in sample.leaves() if isinstance(t, torch.Tensor)]
    if any(t.numel() == 0 or t.numel() > 1000 for t in tensors):
        return False
    first = sample.args[0]
    return not (isinstance(first, torch.Tensor) and first.ndim == 0)  # a dim of a 0-d tensor is an error in JAX


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"tensor{min(value.ndim, 1)}"
    return repr(value) if isinstance(value, bool | str) or value is None else type(value).__name__


def _whole_numbers(sample: Sample) -> Sample | None:
    """The same call with float tensors rounded, which makes zeros and ties."""

    def rounded(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            dense = value.layout == torch.strided
            return value.detach().clone().round() + 0.0 if dense and value.is_floating_point() else value
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            return type(value)(map(rounded, value))
        return value

    if not any(isinstance(t, torch.Tensor) and t.is_floating_point() for t in sample.leaves()):
        return None
    return Sample(tuple(map(rounded, sample.args)), {k: rounded(v) for k, v in sample.kwargs.items()})
