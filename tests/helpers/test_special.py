"""Special functions against torch where jax.scipy.special loses its accuracy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch

from t2j_lsp.rules.helpers import special

ORDERS = [-1.0, 0.5, 1.0, 2.0, 2.5, 3.0, 7.0]
SHIFTS = [-30.7, -20.5, -8.3, -3.2, -1.0, -0.5, 0.0, 0.3, 1.0, 5.5, 12.0]


def test_zeta_is_torchs_for_negative_shifts_too() -> None:
    """Poles, orders that give nothing, and sums over many terms."""
    x, q = np.meshgrid(ORDERS, SHIFTS)
    want = torch.special.zeta(torch.from_numpy(x), torch.from_numpy(q)).numpy()
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(special.zeta)(x, q), want, rtol=1e-12, atol=1e-12)


def test_the_slope_of_zeta_is_torchs() -> None:
    q = torch.tensor(SHIFTS, dtype=torch.float64, requires_grad=True)
    torch.special.zeta(torch.tensor(3.0, dtype=torch.float64), q).sum().backward()
    with jax.enable_x64(True):
        got = jax.grad(lambda q: special.zeta(jnp.asarray(3.0), q).sum())(jnp.asarray(SHIFTS))
    np.testing.assert_allclose(got, q.grad, rtol=1e-12)


def test_the_gradients_of_xlogy_are_torchs() -> None:
    """Where x is 0 and y is 0 or less, too, but for y's at (0, 0), where torch has none."""
    pairs = torch.tensor(
        [[0.0, 0.0], [0.0, -2.0], [0.0, 0.5], [1.0, 0.5], [-1.0, 3.0], [2.5, 1.0]], dtype=torch.float64
    )
    x, y = (part.clone().requires_grad_() for part in pairs.T)
    torch.xlogy(x, y).sum().backward()
    with jax.enable_x64(True):
        given = jnp.asarray(x.detach()), jnp.asarray(y.detach())
        by_x, by_y = jax.grad(lambda *a: special.xlogy(*a).sum(), argnums=(0, 1))(*given)
    np.testing.assert_allclose(by_x, x.grad.numpy())
    known = ~np.isnan(y.grad.numpy())
    np.testing.assert_allclose(np.asarray(by_y)[known], y.grad.numpy()[known])
