"""``torch.max(x, y)``: what ``y`` is says whether it is an axis; a keyword in its own text says nothing."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch

x, y = torch.ones(8, 3), torch.ones(8, 1)

def largest(a, dim, offset):
    return torch.max(a, {second})

print(largest(x, 1, 0), torch.min(y, {other}))
"""


@pytest.mark.parametrize(
    ("second", "written"),
    [
        ("dim", "max_with_indices(a, axis=dim)"),
        ("dim - offset", "max_with_indices(a, axis=dim - offset)"),
        ("y", "jnp.maximum(a, y)"),
        ("y.sum(dim=1)", "jnp.maximum(a, y.sum(axis=1))"),
        ("y.sum(1, keepdim=True)", "jnp.maximum(a, y.sum(axis=1, keepdims=True))"),
    ],
)
def test_the_second_argument_is_an_axis_or_a_tensor(second: str, written: str) -> None:
    done = convert(TEXT.format(second=second, other="x.mean(dim=1, keepdim=True)"))
    assert not done.gaps
    assert written in done.code
    assert "jnp.minimum(y, x.mean(axis=1, keepdims=True))" in done.code
