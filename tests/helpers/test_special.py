"""Special functions against torch where jax.scipy.special loses its accuracy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
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


@pytest.mark.parametrize("jit", [True, False], ids=["jit", "eager"])
def test_a_masked_product_gives_no_gradient_whatever_its_logarithm_is(jit: bool) -> None:
    """A mask, and what is 0 where the product is minus infinity: ``exp(xlogy(x, y))``."""
    values = [[2.0, 0.0], [2.0, -1.0], [0.0, 0.0], [0.5, 0.0], [-1.5, 0.0], [2.0, 3.0], [0.0, -2.0]]
    x, y = (part.clone().requires_grad_() for part in torch.tensor(values, dtype=torch.float64).T)
    torch.where(y > 0, torch.xlogy(x, y), 0.0).sum().backward()
    masked, x.grad = x.grad, None
    torch.xlogy(x, y.abs()).exp().sum().backward()
    small = x.detach() > 0  # of the others the exponential is infinite, or the product none
    with jax.enable_x64(True):
        given = jnp.asarray(x.detach()), jnp.asarray(y.detach())
        slope = jax.grad(lambda x, y: jnp.where(y > 0, special.xlogy(x, y), 0).sum())
        density = jax.grad(lambda x, y: jnp.exp(special.xlogy(x, jnp.abs(y))).sum())
        got, of_exp = (jax.jit(f)(*given) if jit else f(*given) for f in (slope, density))
        unmasked = jax.grad(lambda x: special.xlogy(x, 0.0).sum())
        assert unmasked(jnp.asarray(0.25)) == -jnp.inf and jax.jit(unmasked)(jnp.asarray(1e-3)) == -jnp.inf
        assert jax.jvp(special.xlogy, (2.0, 3.0), (1.0, 0.0))[1] == jnp.log(3.0)
    np.testing.assert_allclose(got, masked)
    np.testing.assert_allclose(np.asarray(of_exp)[small], x.grad.numpy()[small])
