"""``nn.Parameter(x)`` that a function makes of what it is given carries no gradient back to that."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"


@pytest.mark.parametrize(
    ("given", "value", "written"),
    [
        ("x: torch.Tensor", "x", "nnx.Param(jax.lax.stop_gradient(x))"),
        ("x: float | torch.Tensor", "torch.as_tensor(x)", "nnx.Param(jax.lax.stop_gradient(jnp.asarray(x)))"),
        ("x", "torch.as_tensor(x)", "nnx.Param(jax.lax.stop_gradient(jnp.asarray(x)))"),
        ("x", "torch.tensor(x)", "nnx.Param(jax.lax.stop_gradient(jnp.array(x)))"),
        ("x: torch.Tensor", "2 * x.exp()", "nnx.Param(jax.lax.stop_gradient(2 * jnp.exp(x)))"),
        ("x: torch.Tensor", "x.detach()", "nnx.Param(jax.lax.stop_gradient(x))"),
        ("x: torch.Tensor", "x[0].clone()", "nnx.Param(jax.lax.stop_gradient(x[0]))"),
        ("x: torch.Tensor", "x, requires_grad=False", "Buffer(jax.lax.stop_gradient(x))"),
        ("n: int", "torch.ones(n)", "nnx.Param(jnp.ones(n))"),
        ("n", "torch.zeros(2, n)", "nnx.Param(jnp.zeros((2, n)))"),
        ("x: torch.Tensor", "torch.zeros_like(x)", "nnx.Param(jnp.zeros_like(x))"),
    ],
)
def test_a_parameter_cuts_the_gradient_of_what_it_is_made_of(given: str, value: str, written: str) -> None:
    done = convert(HEAD + f"def f({given}):\n    return nn.Parameter({value})\n")
    assert f"return {written}" in done.code and not done.gaps


def test_what_the_function_makes_itself_is_taken_as_it_is() -> None:
    code = convert(HEAD + "def f(n: int):\n    w = torch.randn(n)\n    return nn.Parameter(w)\n").code
    assert "return nnx.Param(w)" in code


def test_a_modules_constructor_takes_what_it_is_given() -> None:
    text = "class A(nn.Module):\n    def __init__(self, w: torch.Tensor):\n        super().__init__()\n"
    assert "self.w = nnx.Param(w)" in convert(HEAD + text + "        self.w = nn.Parameter(w)\n").code
