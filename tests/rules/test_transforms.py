"""``torch.func``, ``torch.vmap`` and ``torch.cond`` as JAX's transformations."""

from __future__ import annotations

import pytest

from .conversion import agrees, refused

FORMS = [
    ("torch.func.grad(lambda t: (t * t).sum())(x)", "jax.grad(lambda t: (t * t).sum())(x)", "x"),
    (
        "torch.func.grad(lambda t, u: (t * u).sum(), argnums=(0, 1))(x, y)[1]",
        "jax.grad(lambda t, u: (t * u).sum(), argnums=(0, 1))(x, y)[1]",
        "xy",
    ),
    ("torch.func.jacrev(lambda t: t * t)(u)", "jax.jacrev(lambda t: t * t)(u)", "u"),
    ("torch.func.jacfwd(lambda t: t * t)(u)", "jax.jacfwd(lambda t: t * t)(u)", "u"),
    ("torch.func.hessian(lambda t: (t * t * t).sum())(u)", "jax.hessian(lambda t: (t * t * t).sum())(u)", "u"),
    ("torch.func.jvp(lambda t: t * t, (u,), (u,))[1]", "jax.jvp(lambda t: t * t, (u,), (u,))[1]", "u"),
    ("torch.func.vjp(lambda t: t * t, u)[1](u)[0]", "jax.vjp(lambda t: t * t, u)[1](u)[0]", "u"),
    ("torch.vmap(lambda t: t @ t)(a)", "jax.vmap(lambda t: t @ t)(a)", "a"),
    (
        "torch.autograd.functional.jacobian(lambda t: t * t * t, u)",
        "jax.lax.stop_gradient(jax.jacrev(lambda t: t * t * t)(u))",
        "u",
    ),
    (
        "torch.autograd.functional.jacobian(lambda t, s: t * s, (u, u), create_graph=True)[1]",
        "jax.jacrev(lambda t, s: t * s, argnums=(0, 1))(u, u)[1]",
        "u",
    ),
    (
        "torch.autograd.functional.hessian(lambda t: (t * t * t).sum(), u, create_graph=True)",
        "jax.hessian(lambda t: (t * t * t).sum())(u)",
        "u",
    ),
    (
        "torch.autograd.functional.jvp(lambda t: t * t, u, u, create_graph=True)[1]",
        "jax.jvp(lambda t: t * t, (u,), (u,))[1]",
        "u",
    ),
    (
        "g = lambda t: (t * t * t).sum(); torch.autograd.functional.hvp(g, u, u, create_graph=True)[1]",
        "g = lambda t: (t * t * t).sum(); (g(u), jax.jvp(jax.grad(g), (u,), (u,))[1])[1]",
        "u",
    ),
    (
        "torch.func.grad_and_value(lambda t: (t * t * t).sum())(u)[0]",
        "grad_and_value(lambda t: (t * t * t).sum())(u)[0]",
        "u",
    ),
    (
        "torch.autograd.functional.vjp(lambda t: t * t, u, u, create_graph=True)[1]",
        "vector_jacobian_product(lambda t: t * t, u, u)[1]",
        "u",
    ),
    (
        "torch.autograd.functional.vjp(lambda t, s: (t * s).sum(), (u, u), create_graph=True)[1][0]",
        "vector_jacobian_product(lambda t, s: (t * s).sum(), (u, u))[1][0]",
        "u",
    ),
    (
        "torch.func.vmap(lambda t, s: t * s, in_dims=(1, None), out_dims=1)(a, 2.0)",
        "jax.vmap(lambda t, s: t * s, in_axes=(1, None), out_axes=1)(a, 2.0)",
        "a",
    ),
]
REFUSED = [
    ("torch.vmap(lambda t: t, randomness='different')(a)", "split the keys", "a"),
    ("torch.vmap(lambda t: t, chunk_size=2)(a)", "jax.lax.map", "a"),
    ("torch.while_loop(lambda state: state.sum() < 3, lambda state: (state + 1,), (a,))", "as one value", "a"),
    ("torch.autograd.functional.jacobian(lambda t: t * t, d)", "one tensor or a tuple", "a"),
]


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated"
)  # PyTorch's own, where it differentiates forwards
@pytest.mark.parametrize(("expression", "text", "inputs"), FORMS)
def test_agrees(expression: str, text: str, inputs: str) -> None:
    agrees(expression, text, inputs)


@pytest.mark.parametrize(("expression", "reason", "inputs"), REFUSED)
def test_is_refused(expression: str, reason: str, inputs: str) -> None:
    refused(expression, reason, inputs)
