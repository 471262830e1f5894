"""Clipping in the words of many hands: lists of what has a gradient, functions that clip, norms added up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(8, 3)
model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
nn.init.constant_(model[0].weight, 0.3)
nn.init.constant_(model[0].bias, 0.1)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
{function}
for i in range(4):
    opt.zero_grad()
    loss = (model(x) - 3).pow(2).mean()
    loss.backward()
    {lines}
    opt.step()
    losses.append(loss.item())
    losses.append(float(norm))
"""
CLIP = "torch.nn.utils.clip_grad_norm_"
MADE = "params = [p for p in model.parameters() if p.requires_grad]\n    "
LISTS = {
    "a list in place": f"norm = {CLIP}([p for p in model.parameters() if p.grad is not None], 0.5)",
    "a generator": f"norm = {CLIP}((p for _, p in model.named_parameters() if p.requires_grad), max_norm=0.5)",
    "a keyword": f"norm = {CLIP}(parameters=list(model.parameters()), max_norm=0.5)",
    "a name": "params = [p for p in model.parameters() if p.requires_grad and p.grad is not None]\n"
    f"    norm = {CLIP}(params, 0.5)",
    "a question": "params = list(filter(lambda p: p.grad is not None, model.parameters()))\n    if len(params) > 0:\n"
    f"        norm = {CLIP}(params, 0.5)",
    "scaled by hand": "params = [p for p in model.parameters() if p.requires_grad]\n"
    "    norm = torch.sqrt(sum(torch.sum((p.grad ** 2)) for p in params))\n"
    "    if norm > 0.5:\n        for p in params:\n            p.grad[:] *= 0.5 / norm",
    "tensors added up": "norm = 0\n    for p in model.parameters():\n        norm += p.grad.data.norm(2) ** 2\n"
    "    norm = norm ** 0.5\n    factor = 0.5 / (norm + 1e-6)\n    if factor < 1:\n"
    "        for p in model.parameters():\n            p.grad.data.mul_(factor)",
}
FUNCTIONS = {
    "a module": f"def clip(net):\n    return {CLIP}(net.parameters(), 0.5)\n",
    "a module's list": "def clip(net, limit=0.5):\n    params = [p for p in net.parameters() if p.grad is not None]\n"
    f"    return {CLIP}(params, limit)\n",
    "by hand": "def clip(net, theta=0.5):\n    params = [p for p in net.parameters() if p.requires_grad]\n"
    "    norm = torch.sqrt(sum(torch.sum((p.grad ** 2)) for p in params))\n"
    "    if norm > theta:\n        for param in params:\n            param.grad[:] *= theta / norm\n    return norm\n",
}
OF_PARAMETERS = {
    "parameters": f"def clip(params, limit=0.5):\n    return {CLIP}(params, limit)\n",
    "filtered parameters": "def clip(params, limit=0.5):\n"
    "    params = list(filter(lambda p: p.requires_grad and p.grad is not None, params))\n"
    f"    if len(params) > 0:\n        return {CLIP}(params, max_norm=limit)\n",
}


@pytest.mark.parametrize("name", [*LISTS, *FUNCTIONS, *OF_PARAMETERS])
def test_gradients_are_clipped_however_it_is_written(name: str) -> None:
    given = "model.parameters()" if name in OF_PARAMETERS else "model"
    lines = LISTS.get(name, f"norm = clip({given})")
    pair = sides(PROGRAM.format(function=(FUNCTIONS | OF_PARAMETERS).get(name, ""), lines=lines), "clipped_lists")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    assert min(pair.torch.losses[1::2]) > 0.5, "each step is clipped"


@pytest.mark.parametrize(
    "lines",
    [
        f"norm = {CLIP}([p for p in model.parameters() if p.dim() > 1], 0.5)",
        f"norm = {CLIP}([p for n, p in model.named_parameters() if n], 0.5)",
        f"{MADE}norm = {CLIP}(params, 0.5)\n    print(params)",
        f"{MADE}norm = 0\n    for p in params:\n        p.data += p.grad",
    ],
    ids=["of some", "by name", "read elsewhere", "more than gradients"],
)
def test_other_lists_stay(lines: str) -> None:
    assert convert(PROGRAM.format(function="", lines=lines)).gaps


LIMITS = {
    "a number": "limit = 0.1 * (1 + i)",
    "of the one before": "limit = limit * 0.9",
    "of the loss": "limit = 0.1 * loss.item() + 0.01",
    "of the loss's tensor": "limit = 0.1 * loss.detach() + 0.01",
    "behind what is kept": "losses.append(loss.item())\n    limit = 0.5 / (i + 1)",
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_that_is_made_behind_the_backward_pass_is_this_steps(name: str) -> None:
    """It was that of the step before."""
    lines = f"{LIMITS[name]}\n    norm = {CLIP}(model.parameters(), limit)"
    pair = sides(PROGRAM.format(function="limit = 1.0", lines=lines), "late_limits")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


BRANCH = """\
import argparse
import torch
from torch import nn

args = argparse.Namespace(clip={clip})
x = torch.linspace(-1, 1, 24).reshape(8, 3)
model = nn.Linear(3, 2)
nn.init.constant_(model.weight, 0.3)
nn.init.constant_(model.bias, 0.1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []


def run(phase):
    for i in range(3):
        loss = (model(x) - 3).pow(2).mean()
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            if {test}:
                {lines}
            opt.step()
        losses.append(loss.item())


run("train")
run("val")
"""
OPTIONAL = (
    ("args.clip is not None", f"{CLIP}(model.parameters(), args.clip)"),
    ("args.clip", f"norm = {CLIP}(model.parameters(), max_norm=args.clip)\n                losses.append(norm.item())"),
)


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize(("test", "lines"), OPTIONAL)
def test_a_branch_that_trains_clips_if_it_is_asked_to(clip: float | None, test: str, lines: str) -> None:
    pair = sides(BRANCH.format(clip=clip, test=test, lines=lines), "optional_clips")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


def test_a_norm_that_is_read_where_nothing_was_clipped_stays() -> None:
    test, lines = "args.clip", f"norm = {CLIP}(model.parameters(), args.clip)"
    source = BRANCH.format(clip=0.5, test=test, lines=lines)
    assert convert(source.replace("losses.append(loss.item())", "losses.append(norm.item())")).gaps
