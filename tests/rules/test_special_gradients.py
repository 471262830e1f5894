"""Functions of ``torch.special`` that PyTorch has no derivatives of: what they give is a constant there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import torch

from t2j_lsp.api import convert

NAMES = ("legendre_polynomial_p(x, 3)", "shifted_chebyshev_polynomial_t(x, 2)", "bessel_j0(x)", "modified_bessel_i1(x)")


@pytest.mark.jax
@pytest.mark.parametrize("call", NAMES)
def test_they_carry_no_gradient(call: str) -> None:
    x = torch.tensor([0.25, 0.75], requires_grad=True)
    value = eval(f"torch.special.{call}", {"torch": torch, "x": x})
    assert not value.requires_grad
    made: dict[str, object] = {}
    exec(convert(f"import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.special.{call} * x\n").code, made)
    f = made["f"]
    assert callable(f)
    gradient = jax.grad(lambda a: f(a).sum())(jnp.array([0.25, 0.75]))
    assert jnp.allclose(gradient, jnp.asarray(value.detach().numpy()), rtol=1e-5)
