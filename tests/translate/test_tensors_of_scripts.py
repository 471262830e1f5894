"""Bare tensors as scripts train them: in parts, under names that they give again, beside arrays of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

HEAD = """\
import numpy as np
import torch
import torch.nn.functional as F

x = torch.linspace(-1, 1, 24).reshape(8, 3)
y = x.sum(1, keepdim=True)
losses = []
"""
LOOP = """
for i in range(4):
    loss = {}
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""
ONES = "torch.ones(8, 3, requires_grad=True)"
PROGRAMS = {
    "rows of what is trained": f"u = {ONES}\nopt = torch.optim.SGD([u], lr=0.1)"
    + LOOP.format("(u[i:i + 2] - x[i:i + 2]).square().sum() + 0.1 * u.square().mean()")
    + "losses.append(u.square().sum().item())\n",
    "a name that is given again": "w = torch.zeros(3, 1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)"
    + LOOP.format("(x @ w - y).square().mean()")
    + "w = torch.zeros(3, 1, requires_grad=True)\nb = torch.zeros(1, requires_grad=True)\n"
    + "opt = torch.optim.SGD([w, b], lr=0.2)"
    + LOOP.format("(x @ w + b - y).square().mean()")
    + "losses += w.flatten().tolist()\n",
    "zeros like what is trained": "w = torch.zeros(3, 2, requires_grad=True)\nhot = torch.zeros_like(x @ w)\n"
    + "hot.scatter_(1, torch.tensor([[1]] * 8), 1)\nopt = torch.optim.SGD([w], lr=0.1)"
    + LOOP.format("(hot * -F.log_softmax(x @ w, 1)).sum()"),
    "a function with an array of NumPy": "rows = np.arange(9.).reshape(3, 3)\nk = x.T\nk = k / 2\n"
    + "def f(w):\n    return torch.from_numpy(rows.T @ rows).float() @ w @ k\n"
    + "w = torch.ones(3, requires_grad=True)\nopt = torch.optim.SGD([w], lr=1e-4)"
    + LOOP.format("f(w).square().sum()"),
    "another name behind the steps": f"u = {ONES}\nopt = torch.optim.SGD([u], lr=0.1)"
    + LOOP.format("(u - x).square().sum()")
    + "v = u.t().detach().numpy()\nlosses += v[0].tolist()\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_train(name: str) -> None:
    pair = sides(HEAD + PROGRAMS[name], "tensors_of_scripts")
    assert not pair.gaps()
    assert len(pair.torch.losses) == len(pair.jax.losses) >= 4
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


def test_rows_by_numpy_are_said() -> None:
    program = f"u = {ONES}\nopt = torch.optim.SGD([u], lr=0.1)\norder = np.random.permutation(8)[:2]"
    gaps = convert(HEAD + program + LOOP.format("u[order].square().sum() + u.mean()")).gaps
    assert any("order, an array of numpy" in gap.reason for gap in gaps)


@pytest.mark.parametrize("read", ["def f():\n    return w\n", "f = lambda: w\n"])
def test_a_name_that_a_function_reads_stays(read: str) -> None:
    program = PROGRAMS["a name that is given again"]
    assert convert(HEAD + read + program).gaps
