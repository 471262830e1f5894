"""Loops over parameters right behind a step are compiled with it, if they are the same there."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

PROGRAM = """\
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--clip_value", type=float, default=0.2)
opt = parser.parse_args([])
data = torch.linspace(-1, 1, 36).reshape(12, 3)
losses = []
limit = 0.3
other = nn.Linear(3, 2)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for i in range(5):
    bound = 0.5 / (i + 1)
    optimizer.zero_grad()
    loss = (model(data) - 1).pow(2).mean()
    loss.backward()
    optimizer.step()
    # keep them small
    for p in model.parameters():
        p.data.clamp_(-bound, bound)
    with torch.no_grad():
        for p in model[0].parameters():
            p.mul_(0.9)
    losses.append(loss.item())
losses.append(model(data).sum().item())
"""
CLAMP = "        p.data.clamp_(-bound, bound)\n"
SHRINK = "            p.mul_(0.9)\n"


def loop_of(code: str) -> str:
    """The training loop of a conversion."""
    return code[code.index("for i in range(5):") :]


@pytest.mark.jax
def test_they_are_compiled_with_the_step_and_compute_the_same() -> None:
    code = trained(PROGRAM, ("model",)).translation.code
    loop = loop_of(code)
    assert "def train_step(model, optimizer, data, bound):" in code and "= train_step(data, bound)" in loop
    assert (
        "nnx.state" not in loop and "# keep them small" not in loop and "p[...] = clamp(p[...], -bound, bound)" in code
    )


def test_limits_of_a_parser_are_numbers() -> None:
    source = PROGRAM.replace("-bound, bound", "-opt.clip_value, opt.clip_value")
    translation = convert(source)
    assert not translation.gaps and "nnx.state" not in loop_of(translation.code)
    for other in ('type=str, default="a"', "type=float, nargs=2, default=0.1", "default=0.1"):
        left = convert(source.replace("type=float, default=0.2", other))
        assert [gap.span.line for gap in left.gaps] == [23], other
    assert [gap.span.line for gap in convert(source.replace("bound = 0.5", "opt.clip_value = 0.5")).gaps] == [23]


@pytest.mark.parametrize(
    "loop",
    [
        "        p.data.clamp_(-bound, losses[-1])\n",
        "        p.data.add_(0.1 * torch.randn_like(p))\n",
        "        p.data.clamp_(-bound, bound)\n        print(p.sum())\n",
        "        p.data.clamp_(-loss, bound)\n",
        "        p.data.normal_(0, bound)\n",
        "        p.data.clamp_(-bound, bound)\n    losses.append(p.sum().item())\n",
        "        p.data.clamp_(-bound, bound)\n    else:\n        losses.append(0)\n",
    ],
)
def test_others_stay_behind_the_step(loop: str) -> None:
    code = convert(PROGRAM.replace(CLAMP, loop)).code
    assert ".parameters()" in loop_of(code) or "nnx.state" in loop_of(code)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # keep them small\n", "    losses.append(model(data).sum().item())\n"),
        ("p in model.parameters()", "p in other.parameters()"),
        ("    # keep them small\n", "    if i % 2:\n        continue\n"),
    ],
)
def test_they_stay_where_something_is_in_the_way(old: str, new: str) -> None:
    assert "nnx.state" in loop_of(convert(PROGRAM.replace(old, new)).code)


def test_the_last_parameter_is_no_other_one() -> None:
    """It was: Flax walks in alphabetical order, and what stood in the loop's variable was read behind the loop."""
    source = "import torch\nfrom torch import nn\n\nnet = nn.Linear(3, 2)\n"
    loop = "for p in net.parameters():\n    p.data.mul_(0.5)\n"
    assert convert(f"{source}{loop}print(p.shape)\n").gaps
    for behind in ("p = 3\nprint(p)\n", "for p in range(3):\n    print(p)\n", "print([p for p in range(3)])\n"):
        assert not convert(source + loop + behind).gaps
