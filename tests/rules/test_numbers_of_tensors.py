"""Lists of tensors with one element each, which PyTorch takes for numbers where it makes a tensor of them."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest

from t2j_lsp import convert

SOURCE = """\
import torch

def f(x: torch.Tensor):
    one, number = x[:1], x.sum()
    kept = []
    for i in range(3):
        kept.append(x[i:i + 1] * 2)
    return {value}

given = f(torch.tensor([3.0, 4.0, 5.0]))
"""
VALUES = {
    "torch.tensor(kept)": ".ravel()",
    "torch.tensor([one, x[1:2]])": ".ravel()",
    "torch.tensor((one,))": ".ravel()",
    "torch.tensor([x[i:i + 1] for i in range(2)])": ".ravel()",
    "torch.tensor([one[None], one[None]])": ".ravel()",
    "torch.as_tensor(kept)": ".ravel()",
    "torch.FloatTensor(kept)": ".ravel()",
    "torch.Tensor([one, x[2:]])": ".ravel()",
    "torch.tensor([one, 2.0])": "[one.squeeze(), 2.0]",
    "torch.tensor([one + 1, number])": "[(one + 1).squeeze(), number]",
    "torch.tensor([[one, 1.0], [0.0, x[2:]]])": "[[one.squeeze(), 1.0], [0.0, x[2:].squeeze()]]",
    "torch.tensor([number, x.mean()])": "jnp.array([number, x.mean()]",
    "torch.tensor([v.sum() for v in kept])": "jnp.array([v.sum() for v in kept])",
    "torch.tensor([v.item() for v in kept])": "jnp.array([v.item() for v in kept])",
}


@pytest.mark.parametrize(("value", "text"), VALUES.items(), ids=VALUES)
def test_each_is_a_number(value: str, text: str) -> None:
    source = SOURCE.format(value=value)
    done = convert(source)
    assert not done.gaps
    assert text in done.code, done.code
    assert text == ".ravel()" or ".ravel()" not in done.code
    torch_side, jax_side = ModuleType("source"), ModuleType("converted")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, torch_side.__dict__)
    exec(done.code, jax_side.__dict__)
    assert jax_side.given.shape == tuple(torch_side.given.shape)
    np.testing.assert_allclose(jax_side.given, torch_side.given.numpy())
