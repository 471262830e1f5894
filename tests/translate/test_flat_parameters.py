"""Parameters as one flat vector: in PyTorch's order and layouts, which Flax's own walk has not."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

net = nn.Linear(3, 2)
{line}
"""
WALK = "for p in named_arrays(net).values()"


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("v = parameters_to_vector(net.parameters())", f"jnp.concatenate([p.ravel() {WALK}])"),
        (
            "n = nn.utils.parameters_to_vector(net.parameters()).shape[0]",
            f"jnp.concatenate([p.ravel() {WALK}]).shape[0]",
        ),
        ("v = torch.cat([p.view(-1) for p in net.parameters()])", f"jnp.concatenate([p.reshape(-1) {WALK}])"),
        ("v = torch.cat([p.data.flatten() for p in net.parameters()])", f"[lax.stop_gradient(p).ravel() {WALK}]"),
        ("vector_to_parameters(torch.ones(8), net.parameters())", "vector_to_parameters(jnp.ones(8), net)"),
    ],
)
def test_flat_vectors_have_pytorchs_order(line: str, written: str) -> None:
    done = convert(TEXT.format(line=line))
    assert not done.gaps
    assert written in done.code


@pytest.mark.parametrize(
    "line",
    [
        "ps = [p.view(-1) for p in net.parameters()]\nps[0].mul_(2)",
        "v = torch.cat([p.grad.view(-1) for p in net.parameters()])",
        "ps = list(net.parameters())\nvector_to_parameters(torch.ones(8), ps)",
    ],
)
def test_what_may_be_written_into_is_no_copy(line: str) -> None:
    assert convert(TEXT.format(line=line)).gaps
