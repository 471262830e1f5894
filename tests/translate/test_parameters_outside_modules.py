"""Parameters that an optimizer updates beside modules: objects in Flax, which a step is given as modules are."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F

x, y = torch.linspace(-1, 1, 12).reshape(6, 2), torch.tensor([0, 1, 2, 0, 1, 2])
net = nn.Linear(2, 3)
nn.init.constant_(net.weight, 0.3)
nn.init.constant_(net.bias, 0.1)
losses = []
"""
W = "torch.linspace(-1, 2, 6).reshape(2, 3)"
LOOP = """
for i in range(5):
    loss = F.cross_entropy({}, y) + 0.1 * {}
    opt.zero_grad()
    loss.backward()
    {}
    opt.step()
    losses.append(loss.item())
"""
STEPS = {
    "beside a module": (
        "s = nn.Parameter(torch.tensor(0.5))\nopt = torch.optim.SGD([*net.parameters(), s], lr=0.1)"
        + LOOP.format("net(x) * s", "s ** 2", "pass")
        + "losses += s.tolist(), net.bias.sum().item()\n",
        "nnx.Optimizer((net, s), ",
    ),
    "alone": (
        f"w = nn.Parameter({W})\nopt = torch.optim.SGD([w], lr=0.5, momentum=0.9)"
        + LOOP.format("x @ w", "w.abs().sum()", "pass")
        + "losses += w.flatten().tolist()\n",
        "nnx.Optimizer((w,), ",
    ),
    "a function reads it": (
        f"w = nn.Parameter({W})\nb = nn.Parameter(torch.zeros(3))\nopt = torch.optim.SGD([w, b], lr=0.5)\n"
        "def f(x):\n    return x @ w + b\n" + LOOP.format("f(x)", "w.square().sum()", "pass"),
        "def f(w, b, x):",
    ),
    "a method reads it": (
        "class Task:\n    def __init__(self):\n        self.w = nn.Parameter(torch.ones(2, 3))\n"
        "        self.opt = torch.optim.SGD([self.w], lr=0.1)\n    def out(self, x):\n        return x @ self.w\n"
        "    def fit(self, x, y):\n        for i in range(5):\n            loss = F.cross_entropy(self.out(x), y)\n"
        "            self.opt.zero_grad()\n            loss.backward()\n            self.opt.step()\n"
        "            losses.append(loss.item())\nTask().fit(x, y)\n",
        "(self.w,)",
    ),
    "a tensor with a module": (
        "s = torch.zeros(3).requires_grad_()\nopt = torch.optim.SGD(list(net.parameters()) + [s], lr=0.1)"
        + LOOP.format("net(x) + s", "s.exp().sum()", "pass"),
        "nnx.Optimizer((net, s), ",
    ),
    "tensors with a scheduler": (
        f"w = {W}.requires_grad_()\nb = torch.zeros(3, requires_grad=True)\nopt = torch.optim.SGD([w, b], lr=0.5)\n"
        "decay = torch.optim.lr_scheduler.StepLR(opt, 2)"
        + LOOP.format("x @ w + b", "w.square().sum()", "pass").replace("opt.step()", "opt.step()\n    decay.step()"),
        "nnx.Optimizer((w, b), ",
    ),
    "gradients that are clipped": (
        f"w = {W}.requires_grad_()\nopt = torch.optim.SGD([w], lr=0.5)"
        + LOOP.format("x @ w", "w.square().sum()", "nn.utils.clip_grad_norm_([w], 0.01)"),
        "scale",
    ),
    "a tensor that shares its values": (
        f"w = {W}.requires_grad_()\nopt = torch.optim.SGD([w], lr=0.5)"
        + LOOP.format("x @ w", "w.square().sum()", "nn.utils.clip_grad_value_([w], 0.01)")
        + "losses += [w.detach().numpy().sum()]\nbest = w.detach().clone()\n",
        "nnx.Optimizer((w,), ",
    ),
    "groups of a module and a tensor": (
        "s = torch.ones(3, requires_grad=True)\nopt = torch.optim.SGD("
        "[{'params': net.parameters()}, {'params': s, 'lr': 0.5}], lr=0.1, weight_decay=0.01)\n"
        "decay = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)"
        + LOOP.format("net(x) * s", "s.square().sum()", "pass").replace("opt.step()", "opt.step()\n    decay.step()"),
        "opt_1.update((s,), (s_grads,))",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_updates_them(name: str) -> None:
    program, written = STEPS[name]
    pair = sides(HEAD + program, "parameters_outside")
    assert not pair.gaps()
    assert written in pair.translation.code
    assert len(pair.torch.losses) == len(pair.jax.losses) >= 5
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=2e-5)
    assert convert(pair.translation.code).code == pair.translation.code


MADE = f"w = nn.Parameter({W})\n"
OUT_OF_SIGHT = {
    "another name": ("u = w\n", "x @ u", "u.sum()"),
    "a dict": ("d = {'w': w}\n", "x @ d['w']", "d['w'].sum()"),
    "an object": ("class Box:\n    def __init__(self, w):\n        self.w = w\nbox = Box(w)\n", "x @ box.w", "w.sum()"),
    "a view": ("v = w.detach()\n", "x @ w", "v.sum()"),
    "an array of NumPy": ("v = w.detach().numpy()\n", "x @ w", "v.sum()"),
    "a module's method": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return x @ w\nnet = Net()\n",
        "net(x)",
        "w.sum()",
    ),
    "a default": ("def f(x, a=w):\n    return x @ a\n", "f(x)", "w.sum()"),
}


@pytest.mark.parametrize("name", OUT_OF_SIGHT)
def test_what_is_read_out_of_sight_stays(name: str) -> None:
    held, out, read = OUT_OF_SIGHT[name]
    source = HEAD + MADE + held + "opt = torch.optim.SGD([w], lr=0.5)" + LOOP.format(out, "w.square().sum()", "pass")
    gaps = convert(f"{source}print({read})\n").gaps
    assert any("It updates w, which another name, an object or a module keeps" in gap.reason for gap in gaps)


def test_what_a_parameter_was_made_of_is_written_into_too() -> None:
    source = HEAD + f"v = {W}\nw = nn.Parameter(v)\nopt = torch.optim.SGD([w], lr=0.5)"
    source += LOOP.format("x @ w", "w.square().sum()", "pass")
    assert not convert(source).gaps
    assert convert(f"{source}print(v)\n").gaps
