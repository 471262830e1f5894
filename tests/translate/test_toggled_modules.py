"""Modules that are frozen while another one is trained, losses with weights, and a critic that is trained in a loop."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

OFF, ON = (f"for p in d.parameters():\n        p.requires_grad = {flag}" for flag in ("False", "True"))
GAN = """\
import torch
from torch import nn

g, d = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = torch.optim.SGD(g.parameters(), lr=0.1), torch.optim.SGD(d.parameters(), lr=0.1)
{setup}
for i in range(4):
    {off}
    fake = g(torch.randn(8, 3))
    kept = {kept}
    loss_g = d(fake).pow(2).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    {on}
    {zero}
    loss_d = d(fake.detach()).pow(2).mean() {more}
    loss_d.backward()
    opt_d.step()
{behind}
"""
FUNCTION = """\
def set_requires_grad(nets, flag=False):
    if not isinstance(nets, list):
        nets = [nets]
    for net in nets:
        if net is not None:
            for p in net.parameters():
                p.requires_grad = flag
"""


def converted(**parts: str) -> tuple[str, int]:
    given = {"setup": "", "off": OFF, "on": ON, "kept": "0", "zero": "opt_d.zero_grad()", "more": "", "behind": ""}
    done = convert(GAN.format(**given | parts))
    return done.code, len(done.gaps)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"off": "d.requires_grad_(False)", "on": "d.requires_grad_()"},
        {"off": OFF.replace(" = False", "_(False)"), "on": ON.replace(" = True", "_(True)")},
        {"setup": FUNCTION, "off": "set_requires_grad([d], False)", "on": "set_requires_grad([g, d], True)"},
        {"setup": FUNCTION, "off": "set_requires_grad(d)", "on": "set_requires_grad(d, flag=True)"},
        {"kept": "d(fake)", "behind": "print(kept)"},
    ],
    ids=["loops", "methods", "loops of methods", "a function of lists", "a function", "a value that no loss has"],
)
def test_switches_that_no_step_minds_go(parts: dict[str, str]) -> None:
    code, gaps = converted(**parts)
    assert not gaps and "requires_grad" not in code
    assert code.count("nnx.value_and_grad") == 2


@pytest.mark.parametrize(
    "parts",
    [
        {"on": "pass"},
        {"on": "if i % 2:\n        d.requires_grad_(True)"},
        {"on": "for p in d.parameters():\n        p.requires_grad = i % 2 == 0"},
        {"kept": "d(fake.detach())", "more": "+ kept.mean()"},
        {"zero": "pass", "off": "opt_d.zero_grad()\n    d.requires_grad_(False)"},
        {"behind": "print([p for p in d.parameters() if p.requires_grad])"},
        {"setup": "opt_all = torch.optim.SGD(nn.ModuleList([g, d]).parameters(), lr=1.0)", "zero": "opt_all.step()"},
        {"setup": "nets = [d]\n" + FUNCTION, "off": "set_requires_grad(nets, False)"},
    ],
    ids=[
        "it stays frozen",
        "it may stay frozen",
        "a flag that is computed",
        "a loss of a value that was computed while it was frozen",
        "gradients from while it was frozen",
        "flags are asked for",
        "another optimizer",
        "a list by its name",
    ],
)
def test_switches_that_a_step_may_mind_stay(parts: dict[str, str]) -> None:
    assert converted(**parts)[1]


CRITIC = """\
import torch
from torch import nn

g, d = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = torch.optim.SGD(g.parameters(), lr=0.1), torch.optim.SGD(d.parameters(), lr=0.1)
one = torch.tensor([1.0])
for i in range(4):
    for _ in range(2):
        opt_d.zero_grad()
        score = d(g(torch.randn(8, 3)).detach()).mean(0)
        score.backward({weights})
        opt_d.step()
    opt_g.zero_grad()
    score = d(g(torch.randn(8, 3))).mean(0)
    score.backward(gradient=one * -1)
    opt_g.step()
"""


@pytest.mark.parametrize(
    ("weights", "loss"),
    [
        ("one", "(score * one).sum()"),
        ("torch.ones_like(score)", "score.sum()"),
        ("score", "(score * jax.lax.stop_gradient(score)).sum()"),
    ],
)
def test_losses_with_weights_are_summed(weights: str, loss: str) -> None:
    done = convert(CRITIC.format(weights=weights))
    assert not done.gaps
    assert f"return {loss}" in done.code and "return (score * (one * -1)).sum()" in done.code
