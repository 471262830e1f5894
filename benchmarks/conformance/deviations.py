"""What can't be compared number by number, and how it is compared instead: a reason for each operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Otherwise:
    """Shapes and dtypes are compared, and of values what does not depend on a generator, on memory or on ties."""

    reason: str
    ranged: bool = False
    """Whether values must lie in the range of PyTorch's, widened by its length."""
    first: bool = False
    """Whether the first output is compared as usual."""
    values: bool = False
    """Whether values are compared as usual, and only gradients are not."""
    only: str = ""
    """The text of the calls that it is about; all calls if empty."""
    tolerance: float = 0.0
    """Another bound, with which all is compared as usual."""

    def compare(self, got: list[Any], want: list[Any], what: str) -> str | None:
        """What differs beyond what usual comparisons tell, or None."""
        if what == "gradients":
            return None
        if len(got) != len(want):
            return f"{len(got)} values, PyTorch has {len(want)}"
        for g, w in zip(got, want, strict=True):
            a, b = np.asarray(g), np.asarray(w)
            if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
                return f"{a.dtype}{a.shape}, PyTorch has {b.dtype}{b.shape}"
            if self.ranged and b.size and not _in_range(a, b):
                return f"values from {a.min()} to {a.max()}, PyTorch has {b.min()} to {b.max()}"
        return None


def _in_range(got: np.ndarray, want: np.ndarray) -> bool:
    low, high = float(want.min()), float(want.max())
    room = max(high - low, 10.0) * 3
    return bool(np.all((got >= low - room) & (got <= high + room)))


DRAWN = Otherwise("the numbers are drawn", ranged=True)
DROPPED = Otherwise("which elements are dropped is drawn")
UNINITIALISED = Otherwise("the values are whatever was in memory")
TIED = Otherwise("which of several equal elements comes first is not stated, and differs", first=True)

COMPARED_OTHERWISE: dict[str, Otherwise] = {
    **dict.fromkeys(("rand_like", "randn", "randn_like", "randint", "randint_like", "normal", "bernoulli"), DRAWN),
    **dict.fromkeys(("multinomial", "exponential", "geometric", "log_normal", "uniform"), DRAWN),
    **dict.fromkeys(("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"), DRAWN),
    "cauchy": Otherwise("the numbers are drawn, and a few of them are huge"),
    **dict.fromkeys((f"nn.functional.{n}dropout" for n in ("", "alpha_", "feature_alpha_")), DROPPED),
    **dict.fromkeys(("nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.rrelu"), DROPPED),
    "nn.functional.scaled_dot_product_attention": Otherwise(DROPPED.reason, only="dropout_p=0.5"),
    **dict.fromkeys(("empty", "empty_like", "new_empty", "empty_strided", "empty_permuted"), UNINITIALISED),
    "new_empty_strided": UNINITIALISED,
    **dict.fromkeys(("sort", "topk", "kthvalue", "mode", "median", "nanmedian"), TIED),
    "argsort": Otherwise(TIED.reason),
    "nn.functional.hardsigmoid": Otherwise("PyTorch multiplies by 1 / 6 in float32", tolerance=1e-7),
    "polygamma": Otherwise("PyTorch's polygamma is off by 1e-9", tolerance=1e-8),
    "special.polygamma": Otherwise("PyTorch's polygamma is off by 1e-9", tolerance=1e-8),
    "digamma": Otherwise("its gradient is PyTorch's polygamma, which is off by 1e-9", tolerance=1e-8),
    **dict.fromkeys(
        ("logical_and", "logical_or", "logical_xor", "logical_not"),
        Otherwise("in place PyTorch keeps the gradient of what is overwritten", values=True, only="out.logical"),
    ),
    **dict.fromkeys(("fft.ihfft2", "fft.ihfftn"), Otherwise("PyTorch leaves out= as it was", only="out=out")),
    "as_strided_scatter": Otherwise(
        "PyTorch gives the input the gradient of what is written over it, and none of the rest", values=True
    ),
    "cholesky_solve": Otherwise(
        "PyTorch's gradient has both triangles of the factor, JAX's the one that is read", values=True
    ),
}
"""By an operator's full name, or by its name."""

DRAWN_IN_TRAINING = {
    **dict.fromkeys(("nn.Dropout", "nn.Dropout1d", "nn.Dropout2d", "nn.Dropout3d"), DROPPED.reason),
    **dict.fromkeys(("nn.AlphaDropout", "nn.FeatureAlphaDropout"), DROPPED.reason),
    "nn.RReLU": "the slopes are drawn",
}
"""Modules that are compared in evaluation mode only, and why."""

MADE_SINGLE = ("float", "cfloat")
"""Operators that give float32 whatever comes in."""
