"""Two updates whose gradients are zeroed once: what a loss leaves in the other module is part of the other update."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import torch
from torch import nn

z, data = torch.linspace(-1, 1, 16).reshape(8, 2), torch.linspace(0, 1, 24).reshape(8, 3)
gen, dis = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Sequential(nn.Linear(3, 1), nn.Tanh())
for p in (*gen.parameters(), *dis.parameters()):
    nn.init.constant_(p, 0.3)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.5, momentum=0.9)
opt_d = torch.optim.SGD(dis.parameters(), lr=0.5)
schedule = torch.optim.lr_scheduler.StepLR(opt_g, 1, 0.5)
losses = []
for i in range(4):
    opt_d.zero_grad()
    opt_g.zero_grad()
    fake = gen(z)
    g_loss = (dis(fake) - 1).pow(2).mean()
    g_loss.backward(retain_graph=True)
    {front}
    opt_g.step()
    {between}
    d_loss = ({real} - 1).pow(2).mean() + dis({fake}).pow(2).mean()
    d_loss.backward()
    {behind}
    opt_d.step()
    losses += [g_loss.item(), d_loss.item()]
"""
PLAIN = {"front": "pass", "between": "pass", "real": "dis(data)", "fake": "fake.detach()", "behind": "pass"}
MOVED = {
    "plainly": {},
    "its gradients clipped": {"front": "torch.nn.utils.clip_grad_norm_(gen.parameters(), 0.05)"},
    "the other's gradients clipped": {"behind": "torch.nn.utils.clip_grad_norm_(dis.parameters(), 0.05)"},
    "a number printed": {"between": "print(g_loss.item())"},
    "its loss as a number": {"real": "g_loss.item() * dis(data)"},
}
LEFT = {
    "a gradient flows back": {"fake": "fake"},
    "the updated module is used": {"between": "fake = gen(z)"},
    "a function may use it": {"between": "def again():\n        return gen(z)\n    fake = again()"},
    "a schedule": {"between": "schedule.step()"},
    "the loss is a part": {"real": "g_loss + dis(data)"},
}


@pytest.mark.parametrize("name", MOVED)
def test_one_step_makes_both_updates(name: str) -> None:
    pair = sides(PROGRAM.format(**(PLAIN | MOVED[name])).replace("    pass\n", ""), f"later_{name.replace(' ', '_')}")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    assert len(set(pair.torch.losses)) == 8


@pytest.mark.parametrize("name", LEFT)
def test_where_the_order_matters_it_stays(name: str) -> None:
    gaps = convert(PROGRAM.format(**(PLAIN | LEFT[name])).replace("    pass\n", "")).gaps
    assert any("The gradients of another loss" in gap.reason for gap in gaps)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("torch.nn.utils.clip_grad_norm_(dis.parameters(), 0.1)", "Gradients are clipped before"),
        ("opt_d.zero_grad()", "Gradients of a backward pass are zeroed before"),
    ],
)
def test_what_is_done_to_gradients_between_two_losses_is_not_left_out(line: str, reason: str) -> None:
    program = PROGRAM.format(**(PLAIN | {"front": line})).replace("    pass\n", "")
    program = program.replace("    opt_g.step()\n", "").replace(
        "    opt_d.step()\n", "    opt_d.step()\n    opt_g.step()\n"
    )
    (gap,) = convert(program).gaps
    assert reason in gap.reason
