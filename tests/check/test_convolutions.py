"""Convolutions as matrix products of windows: the same numbers as XLA's own and torch's, in float64."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax import lax

from t2j_lsp.check.workers.jax_side.convolution import MANY, by_windows
from t2j_lsp.contract import VerdictKind

from .conftest import Check

SPATIAL, KERNEL = (7, 9, 8), (3, 2, 4)
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"window_strides": (2, 1, 3)},
    "transposed": {"lhs_dilation": (2, 1, 3)},
    "dilated": {"rhs_dilation": (1, 2, 2)},
    "uneven and negative padding": {"padding": ((1, 2), (-1, 3), (0, 1))},
    "groups": {"feature_group_count": 2},
    "channelwise": {"feature_group_count": 6},
    "groups of the batch, as in gradients of grouped convolutions": {"batch_group_count": 2},
    "a window as large as its input": {"padding": ((0, -4), (0, -7), (0, -4))},
    "all at once": {
        "window_strides": (2, 2, 2),
        "lhs_dilation": (3, 3, 3),
        "rhs_dilation": (2, 2, 2),
        "padding": ((2, 1), (2, 1), (2, 1)),
        "feature_group_count": 2,
    },
}


@pytest.mark.parametrize(
    ("setting", "rank", "last"),
    [*((s, 3, False) for s in SETTINGS), ("plain", 3, True), ("all at once", 1, True), ("all at once", 2, True)],
)
def test_windows_give_what_xla_gives(setting: str, rank: int, last: bool) -> None:
    given = {
        "window_strides": (1,) * 3,
        "padding": ((1, 1),) * 3,
        "lhs_dilation": (1,) * 3,
        "rhs_dilation": (1,) * 3,
        "feature_group_count": 1,
        "batch_group_count": 1,
        **SETTINGS[setting],
    }
    given = {k: tuple(v)[:rank] if isinstance(v, tuple) else v for k, v in given.items()}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 6, *SPATIAL[:rank]))
    w = rng.standard_normal((12, 6 // given["feature_group_count"], *KERNEL[:rank]))
    axes = "DHW"[:rank]
    names = ("NC" + axes, "OI" + axes, "NC" + axes)
    if last:
        x, w = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2))
        names = ("N" + axes + "C", axes + "IO", "N" + axes + "C")
    numbers = lax.conv_dimension_numbers(x.shape, w.shape, names)
    with jax.enable_x64(True):
        jax_side, torch_side = (
            np.asarray(jax.jit(partial(function, dimension_numbers=numbers, **given))(x, w))
            for function in (by_windows, lax.conv_general_dilated)
        )
    assert jax_side.shape == torch_side.shape
    assert jax_side.dtype == np.float64
    np.testing.assert_allclose(jax_side, torch_side, rtol=0, atol=1e-13 * np.abs(torch_side).max())


def test_windows_give_what_torch_gives() -> None:
    x = torch.randn(2, 4, 7, 9, 8, dtype=torch.float64)
    w = torch.randn(6, 2, 3, 2, 4, dtype=torch.float64)
    wanted = torch.nn.functional.conv3d(x, w, stride=(1, 2, 1), padding=(1, 0, 2), dilation=(2, 1, 1), groups=2)
    with jax.enable_x64(True):
        left, right = jnp.asarray(x.numpy()), jnp.asarray(w.numpy())
        convolution = partial(
            by_windows,
            window_strides=(1, 2, 1),
            padding=((1, 1), (0, 0), (2, 2)),
            lhs_dilation=(1, 1, 1),
            rhs_dilation=(2, 1, 1),
            dimension_numbers=lax.conv_dimension_numbers(left.shape, right.shape, ("NCDHW", "OIDHW", "NCDHW")),
            feature_group_count=2,
            batch_group_count=1,
        )
        value = jax.jit(convolution)(left, right)
    np.testing.assert_allclose(value, wanted.numpy(), rtol=0, atol=1e-12)


TORCH = """
# t2j: x=f32[3, 8, 6, 10, 9]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv3d(8, 32, 3, padding=1, stride=(1, 2, 1))
        self.mix = nn.Conv3d(32, 32, 3, padding=2, dilation=2, groups=2)
        self.up = nn.ConvTranspose3d(32, 8, 3, stride=(1, 2, 1), padding=1, output_padding=(0, 1, 0))
    def forward(self, x):
        return self.up(torch.tanh(self.mix(torch.tanh(self.down(x)))))
"""
JAX = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.down = nnx.Conv(8, 32, (3, 3, 3), strides=(1, 2, 1), padding=((1, 1),) * 3, rngs=rngs)
        self.mix = nnx.Conv(32, 32, (3, 3, 3), padding=((2, 2),) * 3, kernel_dilation={dilation},
                            feature_group_count=2, rngs=rngs)
        self.up = nnx.ConvTranspose(32, 8, (3, 3, 3), strides=(1, 2, 1), padding=((1, 1), (1, {end}), (1, 1)),
                                    transpose_kernel=True, rngs=rngs)
    def __call__(self, x):
        x = jnp.moveaxis(x, 1, -1)
        return jnp.moveaxis(self.up(jnp.tanh(self.mix(jnp.tanh(self.down(x))))), -1, 1)
"""


def test_a_large_convolution_has_its_verdict(check: Check) -> None:
    """Each of its convolutions has more products than XLA is left with."""
    products = 3 * 32 * 6 * 5 * 9 * 16 * 27
    assert products > MANY
    verdict = check(TORCH, JAX.format(dilation=(2, 2, 2), end=2), initial=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


def test_a_large_convolution_that_is_wrong_is_different(check: Check) -> None:
    wrong = JAX.format(dilation=(2, 2, 2), end=2).replace("jnp.tanh(self.down(x))", "jnp.tanh(self.down(x[:, ::-1]))")
    assert check(TORCH, wrong, initial=False).verdict is VerdictKind.DIFFERENT
