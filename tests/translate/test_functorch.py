"""``functorch``, as PyTorch's ``torch.func`` was called before it became a part of it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

BODY = "\n\n\ndef f(x):\n    return (x**2).sum()\n\n\n"


@pytest.mark.parametrize(
    ("head", "call", "written"),
    [
        ("import torch\nfrom functorch import vmap", "vmap(f, in_dims=0)", "jax.vmap(f)"),
        ("from functorch import vmap, grad as gradient", "vmap(gradient(f))", "jax.vmap(jax.grad(f))"),
        ("import functorch", "functorch.jacrev(f)", "jax.jacrev(f)"),
        ("import functorch as ft", "ft.jacfwd(f)", "jax.jacfwd(f)"),
        ("from functorch.experimental import hessian", "hessian(f)", "jax.hessian(f)"),
    ],
)
def test_its_transformations_are_those_of_jax(head: str, call: str, written: str) -> None:
    done = convert(f"{head}{BODY}g = {call}\n")
    assert not done.gaps
    assert f"g = {written}" in done.code and "functorch" not in done.code


@pytest.mark.parametrize("name", ["make_functional", "combine_state_for_ensemble", "make_functional_with_buffers"])
def test_what_is_gone_is_said(name: str) -> None:
    done = convert(f"import torch\nfrom functorch import {name}\n\n\ndef split(model):\n    return {name}(model)\n")
    assert ["nnx.split" in gap.reason for gap in done.gaps] == [True]


def test_a_module_of_a_like_name_stays() -> None:
    text = "import torch\nfrom functorchard import vmap\n\n\ndef f(x):\n    return vmap(torch.sin)(x)\n"
    assert "from functorchard import vmap" in convert(text).code
