"""``requires_grad = False`` of tensors that have no gradients."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

FLAGS = """\
import torch
from torch import nn


class Encoding(nn.Module):
    def __init__(self, width):
        super().__init__()
        pe = torch.zeros(9, width)
        pe.{slip} = False
        pe[:, 0::2] = 1.0
        self.pe = pe
        self.pe.requires_grad = False

    def forward(self, x):
        {before}return x + self.pe[: x.size(1)]
"""


@pytest.mark.parametrize("slip", ["requires_grad", "require_grad"])
def test_a_flag_of_a_tensor_that_asks_for_no_gradients_goes(slip: str) -> None:
    done = convert(FLAGS.format(slip=slip, before=""))
    assert not done.gaps and "grad" not in done.code, done.gaps


@pytest.mark.parametrize("before", ["x.requires_grad = False\n        ", "self.pe.requires_grad_()\n        "])
def test_a_flag_of_what_may_have_gradients_stays(before: str) -> None:
    assert convert(FLAGS.format(slip="requires_grad", before=before)).gaps


DETACHED = {
    "return t.detach() if t.requires_grad else t": "return jax.lax.stop_gradient(t)",
    "return t.detach() if deep and t.requires_grad else t": "return jax.lax.stop_gradient(t) if deep else t",
    "if t.requires_grad:\n        t = t.detach()\n    return t": "t = jax.lax.stop_gradient(t)\n    return t",
}


@pytest.mark.parametrize("torch", DETACHED)
def test_what_is_detached_if_it_has_gradients_is_detached(torch: str) -> None:
    done = convert(f"from torch import Tensor\n\n\ndef f(t: Tensor, deep: bool, u: Tensor):\n    {torch}\n")
    assert not done.gaps and DETACHED[torch] in done.code


@pytest.mark.parametrize(
    "torch",
    [
        "return t.detach() if not t.requires_grad else t",
        "return t.detach() if t.requires_grad else u",
        "return t.detach() if u.requires_grad else t",
        "return t.detach() if deep or t.requires_grad else t",
        "if t.requires_grad:\n        t = t.detach()\n    else:\n        t = u\n    return t",
        "if t.requires_grad:\n        t = t.detach()\n        t = t + u\n    return t",
    ],
)
def test_other_questions_for_the_flag_stay(torch: str) -> None:
    flags = "from torch import Tensor\n\n\ndef f(t: Tensor, deep: bool, u: Tensor):\n    t = t.requires_grad_()\n    "
    assert convert(f"{flags}{torch}\n").gaps
