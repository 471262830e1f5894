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
SUMS = "sum mean var std norm linalg_vector_norm cumsum logsumexp logcumsumexp"
"""Of these, those that add up many terms: in another order, as XLA's, a sum is off by more."""
PART_OF_ROOT = 1 / 6
"""Of the root of the number of terms: the expected error, in units, of a sum of equal terms in their order."""
FACTORISED = """
    _linalg_svd _linalg_eigh _linalg_eigvals _linalg_det _linalg_slogdet _linalg_solve_ex linalg_cholesky_ex linalg_eig
    linalg_inv_ex linalg_ldl_factor_ex linalg_lstsq linalg_lu_factor_ex linalg_matrix_exp linalg_qr
    linalg_solve_triangular triangular_solve cholesky cholesky_solve cholesky_inverse
"""
"""Operations on matrices. A library's result is exact for a matrix near to the one given, by units in the last place
of its largest element: that is all that is promised, and singular vectors may turn far."""
_ROUNDED, _SUMS, _FACTORISED = (frozenset(names.split()) for names in (ROUNDED, SUMS, FACTORISED))


def _is_inexact(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64)


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
        name = func.overloadpacket.__name__
        if name in _FACTORISED:
            args = tuple(self._near(argument) if _is_inexact(argument) else argument for argument in args)
        result = func(*args, **(kwargs or {}))
        if (name := name.rstrip("_")) in _ROUNDED:
            terms = args[0].numel() if name in _SUMS and isinstance(args[0], torch.Tensor) else 1
            for tensor in result if isinstance(result, list | tuple) else [result]:
                if _is_inexact(tensor):
                    self._move(tensor, terms / max(tensor.numel(), 1))
        return result

    def _noise(self, tensor: torch.Tensor) -> torch.Tensor:
        """Units in the last place of 1, as many as the tensor has elements, up or down."""
        noise = torch.finfo(tensor.dtype).eps * self.rng.uniform(-1, 1, tuple(tensor.shape))
        return torch.from_numpy(np.asarray(noise)).to(tensor)

    def _near(self, matrix: torch.Tensor) -> torch.Tensor:
        """A matrix so near that another library may as well have factorised it."""
        largest = matrix.abs().max() if matrix.numel() else 0
        return matrix + UNITS * self._noise(matrix) * largest

    def _move(self, tensor: torch.Tensor, terms: float) -> None:
        factor = 1 + max(UNITS, PART_OF_ROOT * terms**0.5) * self._noise(tensor)
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
