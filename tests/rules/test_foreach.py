"""Conversions of ``rules/foreach.py``, in text and in numbers."""

from __future__ import annotations

import pytest

from .conversion import agrees, converted, refused

FOREACH = [
    ("torch._foreach_neg([x, z])", "tuple(-x for x in [x, z])", "xz"),
    ("torch._foreach_reciprocal([x, z])", "tuple(1 / x for x in [x, z])", "xz"),
    ("torch._foreach_exp((x, z))", "tuple(jnp.exp(x) for x in (x, z))", "xz"),
    ("torch._foreach_mul([x, z], 1 - 0.5)", "tuple(x * (1 - 0.5) for x in [x, z])", "xz"),
    ("torch._foreach_div([x, z], [2.0, 3])", "tuple(x / y for x, y in zip([x, z], [2.0, 3], strict=True))", "xz"),
    ("torch._foreach_sub([a, y], [b, x])", "tuple(x - y for x, y in zip([a, y], [b, x], strict=True))", "abxy"),
    (
        "torch._foreach_add([a, y], [b, x], alpha=-2)",
        "tuple(x + -2 * y for x, y in zip([a, y], [b, x], strict=True))",
        "abxy",
    ),
    ("x = 3.0; torch._foreach_mul([a, b], x)", "x = 3.0; tuple(y * x for y in [a, b])", "ab"),
    (
        "torch._foreach_addcdiv([a], [b], [a], value=0.5)",
        "tuple(x + 0.5 * y / z for x, y, z in zip([a], [b], [a], strict=True))",
        "ab",
    ),
    (
        "torch._foreach_addcmul([a], [b], [a], [3.0])",
        "tuple(x + u * y * z for x, y, z, u in zip([a], [b], [a], [3.0], strict=True))",
        "ab",
    ),
    ("torch._foreach_lerp([a], [b], 0.25)", "tuple(x + 0.25 * (y - x) for x, y in zip([a], [b], strict=True))", "ab"),
    (
        "torch._foreach_lerp([a], [b], [0.75])",
        "tuple(x + z * (y - x) for x, y, z in zip([a], [b], [0.75], strict=True))",
        "ab",
    ),
    ("torch._foreach_pow([x, z], 2)", "tuple(x ** 2 for x in [x, z])", "xz"),
    ("torch._foreach_pow(0.9, [x, z])", "tuple(0.9 ** x for x in [x, z])", "xz"),
    ("torch._foreach_maximum([x, z], 0.25)", "tuple(jnp.maximum(x, 0.25) for x in [x, z])", "xz"),
    ("torch._foreach_norm([x, z])", "tuple(vector_norm(x, 2) for x in [x, z])", "xz"),
    (
        "[g.mean(0) for g in torch._foreach_sqrt([x * x + 1])]",
        "[g.mean(axis=0) for g in tuple(jnp.sqrt(x) for x in [x * x + 1])]",
        "x",
    ),
]


@pytest.mark.parametrize(("torch", "jax", "inputs"), FOREACH)
def test_each_tensor_of_a_list(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


IN_PLACE = [
    ("torch._foreach_neg_(v)", "v = tuple(-x for x in v)"),
    ("torch._foreach_add_(v, [a], alpha=-2)", "v = tuple(x + -2 * y for x, y in zip(v, [a], strict=True))"),
    ("torch._foreach_sub_(v, 3.0)", "v = tuple(x - 3.0 for x in v)"),
    (
        "torch._foreach_addcmul_(v, [a], [b], value=0.5)",
        "v = tuple(x + 0.5 * y * z for x, y, z in zip(v, [a], [b], strict=True))",
    ),
    ("torch._foreach_addcdiv_(v, [a], [b])", "v = tuple(x + y / z for x, y, z in zip(v, [a], [b], strict=True))"),
    ("torch._foreach_lerp_(v, [a], 0.5)", "v = tuple(x + 0.5 * (y - x) for x, y in zip(v, [a], strict=True))"),
    ("torch._foreach_pow_(v, 3)", "v = tuple(x ** 3 for x in v)"),
    ("torch._foreach_sqrt_(v)", "v = tuple(jnp.sqrt(x) for x in v)"),
]


@pytest.mark.parametrize(("torch", "jax"), IN_PLACE)
def test_a_list_that_the_function_made_is_bound_anew(torch: str, jax: str) -> None:
    """Also in a loop around all of its life, and behind comprehensions that only compute with it."""
    agrees(f"v = [x * x for x in [a, b][:1]]; {torch}; v[0]", f"v = [x * x for x in [a, b][:1]]; {jax}; v[0]", "ab")


TAKEN = [
    "v = [a, b]; torch._foreach_neg_(v); a",
    "v = [x * 2 for x in [a, b]]; w = v[0]; torch._foreach_neg_(v); w",
    "v = torch._foreach_neg([a, b]); w = v; torch._foreach_neg_(v); w",
    "v = [x.to(a.dtype) for x in [a, b]]; torch._foreach_neg_(v); a",
]


@pytest.mark.parametrize("source", TAKEN)
def test_a_list_whose_tensors_have_other_names_stays(source: str) -> None:
    gaps = converted(source, "ab")[1].gaps
    assert any("PyTorch writes into every tensor of the list" in gap.reason for gap in gaps)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("torch._foreach_mul([x], unknown)", "whether other is a list or one number"),
        ("torch._foreach_mul([x], float(unknown))", "give it a name first"),
        ("torch._foreach_mul_([x], 2)", "PyTorch writes into every tensor of the list"),
    ],
)
def test_what_is_not_sure_stays(source: str, reason: str) -> None:
    refused(source, reason, "x")
