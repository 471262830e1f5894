"""What ``x ** y`` of two tensors needs to be said about, as an operator and as a function."""

from __future__ import annotations

from .facts import Fact, Tensor

NEGATIVE_EXPONENTS = (
    "Of integers, a negative exponent gives 1 / x**n rounded to 0 in PyTorch, and other numbers in JAX."
)


def may_be_integers(base: Fact, exponent: Fact) -> bool:
    """Whether both are tensors that may hold integers, as far as anything is known of them."""
    return all(isinstance(f, Tensor) and (f.dtype is None or _is_integer(f.dtype)) for f in (base, exponent))


def may_be_floats(base: Fact, exponent: Fact) -> bool:
    """Whether both are tensors of which nothing says that they hold integers."""
    return all(isinstance(f, Tensor) and (f.dtype is None or not _is_integer(f.dtype)) for f in (base, exponent))


def _is_integer(dtype: str) -> bool:
    return "int" in dtype or "bool" in dtype
