"""What is kept of parameters while they are trained: PyTorch gives their own memory, JAX an array."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import copy

import torch
from torch import nn

net = nn.Linear(3, 2)
for p in net.parameters():
    nn.init.constant_(p, 0.5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)


def state(module):
    return {returned}


def fit():
    for i in range(2):
        optimizer.zero_grad()
        loss = (net(torch.ones(4, 3)) - 3).pow(2).mean()
        loss.backward()
        optimizer.step()


{before}
before = {kept}
fit()
values = {read}
"""
FOLLOW = [
    "net.weight.data",
    "net.weight.detach().cpu().numpy()",
    "(net.bias.detach(), 0)",
    "[v.cpu().numpy() for _, v in net.state_dict().items()]",
    "{k: v.detach() for k, v in net.state_dict().items()}",
    "net.state_dict()['weight'].numpy()",
    "state(net)",
]
STAY = [
    "net.weight.data.clone()",
    "net.weight.detach().numpy().copy()",
    "net.weight.detach().abs()",
    "copy.deepcopy(net.weight.data)",
]


@pytest.mark.parametrize("kept", FOLLOW)
def test_what_follows_the_training_is_said(kept: str) -> None:
    program = PROGRAM.format(
        returned="[p.detach() for p in module.parameters()]", kept=kept, read="str(before)", before=""
    )
    assert any("this follows the parameters as they are trained" in gap.reason for gap in convert(program).gaps)


@pytest.mark.parametrize(
    ("returned", "noted"),
    [
        ("[v.cpu().numpy() for _, v in module.state_dict().items()]", True),
        ("module.weight.detach()", True),
        ("[v.cpu().numpy().copy() for _, v in module.state_dict().items()]", False),
        ("module.weight.detach().sum()", False),
    ],
)
def test_what_a_function_gives_of_parameters_has_a_note(returned: str, noted: bool) -> None:
    done = convert(PROGRAM.format(returned=returned, kept="str(state(net))", read="0", before=""))
    assert any("the parameters' own memory" in one.reason for one in done.findings) is noted
    assert not done.gaps


@pytest.mark.parametrize("kept", STAY)
def test_copies_stay(kept: str) -> None:
    pair = sides(PROGRAM.format(returned="0", kept=kept, read="float(before.sum())", before=""), "copies_of_weights")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.values, pair.torch.values)


def test_what_is_read_before_the_training_may_be_a_view() -> None:
    program = PROGRAM.format(
        returned="0", kept="net.weight.data", before="fit()", read="float(net.weight.sum())"
    ).replace("fit()\nvalues", "values = float(before.sum())\nfit()\nlast")
    pair = sides(program, "views_before_training")
    assert not pair.gaps()
    np.testing.assert_allclose([pair.jax.values, pair.jax.last], [pair.torch.values, pair.torch.last], rtol=1e-6)
