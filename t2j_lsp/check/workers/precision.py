"""Operands whose products are exact in float32 and are off by 1e-4 and more in TF32 or bfloat16.

TF32 keeps 10 bits behind the leading one, float32 keeps 23. The elements here need 13 of them, and each is multiplied
by one and added to zeros, so that a right float32 result is these elements again.
"""

from __future__ import annotations

import numpy as np

from t2j_lsp.check.protocol import NdArray

SIZE = 256
CHANNELS = 64


def telling() -> NdArray:
    """Elements between 1 and 2 in steps of 2**-13."""
    steps = np.random.default_rng(0).integers(0, 2**13, (SIZE, SIZE))
    inputs: NdArray = (1 + steps / 2**13).astype(np.float32)
    return inputs


def permutation() -> NdArray:
    """A matrix that reorders columns."""
    order: NdArray = np.eye(SIZE, dtype=np.float32)[np.random.default_rng(1).permutation(SIZE)]
    return order


def kernel() -> NdArray:
    """A 3 by 3 convolution that changes nothing, with padding 1."""
    weights = np.zeros((CHANNELS, CHANNELS, 3, 3), np.float32)
    weights[np.arange(CHANNELS), np.arange(CHANNELS), 1, 1] = 1
    return weights
