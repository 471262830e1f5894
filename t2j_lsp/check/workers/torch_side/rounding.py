"""Rounds what a program computes otherwise, by units in the last place: what that changes, rounding decides.

A value that falls on either side of a step (``(x * scale).to(torch.int8)``) need not fall on the same one in JAX. Zeros
and short numbers stay, so that what is compared, or tied, without any rounding stays so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

UNITS = 2
"""How far a result is moved, in units in the last place."""
ROUNDED = """
    mul div add sub rsub addmm addmv addbmm baddbmm mm mv bmm dot sum mean prod cumsum cumprod logcumsumexp logsumexp
    exp expm1 log log1p log2 log10 sqrt rsqrt pow reciprocal sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid
    erf softplus _softmax _log_softmax gelu silu convolution native_layer_norm native_group_norm native_batch_norm
    addcmul addcdiv lerp linear var std norm linalg_vector_norm _cdist_forward _fused_rms_norm
"""
"""Operations whose results are rounded, by the names that PyTorch's dispatcher has for them."""
_ROUNDED = frozenset(ROUNDED.split())


class _Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Moves the results of inexact operations."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rng = np.random.default_rng(seed)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: else PyTorch loads its compiler to keep it from the method below, which takes as long as the rest of it.

        Nothing is compiled in a worker.
        """
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__.rstrip("_") in _ROUNDED:
            for tensor in found if isinstance(found, list | tuple) else [found]:
                if isinstance(tensor, torch.Tensor) and tensor.dtype in (torch.float32, torch.float64):
                    self._move(tensor)
        return found

    def _move(self, tensor: torch.Tensor) -> None:
        spread = UNITS * torch.finfo(tensor.dtype).eps
        factor = torch.from_numpy(np.asarray(1 + spread * self.rng.uniform(-1, 1, tuple(tensor.shape)))).to(tensor)
        short = tensor == tensor.to(torch.float32 if tensor.dtype == torch.float64 else torch.bfloat16)
        tensor.copy_(torch.where(short, tensor, tensor * factor))


@contextlib.contextmanager
def rounded_otherwise(seed: int | None) -> Iterator[None]:
    """Everything inside is rounded otherwise; as usual where ``seed`` is None."""
    if seed is None:
        yield
        return
    with _Rounding(seed):
        yield
