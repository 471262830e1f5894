"""``float(x)`` of a tensor with one element and axes, which JAX takes no number out of."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("float(torch.ones(1))", "jnp.ones(1).item()"),
        ("int(torch.ones(1, 1))", "int(jnp.ones((1, 1)).item())"),
        ("float(torch.arange(1))", "float(jnp.arange(1).item())"),
        ("float(torch.ones(1).sum())", "float(jnp.ones(1).sum())"),
        ("float(x)", "float(x)"),
    ],
)
def test_axes_are_taken_off_first(source: str, wanted: str) -> None:
    assert f"return {wanted}\n" in translate(f"import torch\n\n\ndef f(x):\n    return {source}\n").code
