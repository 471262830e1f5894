"""Gradients that another part of a program leaves in the parameters of a step that zeroes them only behind it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

FUNCTIONS = """\
import torch
from torch import nn

generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)


def train_critic(real, z):
    {before}
    loss = critic(generator(z).detach()).mean() - critic(real).mean()
    loss.backward()
    of_critic.step()
    {behind}


def train_generator(z):
    {loss}
    loss.backward()
    of_generator.step()
    of_generator.zero_grad()
    {last}


{calls}
"""
ZERO = "of_critic.zero_grad()"
LOSS = "loss = -critic(generator(z)).mean()"
CALLS = (
    "for i in range(3):\n    train_critic(torch.randn(4, 3), torch.randn(4, 2))\n    train_generator(torch.randn(4, 2))"
)
BLOCKS = """\
import torch
from torch import nn

generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)

for i in range(3):
    for k in range(2):
        {before}
        loss = critic(generator(torch.randn(4, 2)).detach()).mean() - critic(torch.randn(4, 3)).mean()
        loss.backward()
        of_critic.step()
        {behind}
    loss_g = -critic(generator(torch.randn(4, 2))).mean()
    loss_g.backward()
    of_generator.step()
    of_generator.zero_grad()
    {last}
"""
LEFT = {"before": "pass", "behind": ZERO, "last": "pass"}


def reasons(text: str, **parts: str) -> list[str]:
    return [gap.reason for gap in convert(text.format(**{"loss": LOSS, "calls": CALLS, **parts})).gaps]


@pytest.mark.parametrize("text", [FUNCTIONS, BLOCKS], ids=["of a function", "of another block"])
def test_a_step_takes_what_another_loss_left(text: str) -> None:
    """In PyTorch the critic's step moves by the generator's loss too: it had no gradients to zero before that."""
    (reason,) = reasons(text, **LEFT)
    assert "radients of another loss" in reason or "leaves some of another loss in critic" in reason


def test_so_does_one_in_a_function_that_nothing_in_the_file_calls() -> None:
    (reason,) = reasons(FUNCTIONS, **LEFT, calls="pass")
    assert "train_generator() leaves some of another loss in critic" in reason


def test_so_does_one_whose_gradients_add_up() -> None:
    """``backward()`` of several batches for one step: the first adds to what was left."""
    loss = "    loss = critic(generator(z).detach()).mean() - critic(real).mean()\n    loss.backward()\n"
    text = FUNCTIONS.replace(loss, "    for x in real:\n        loss = critic(x).mean()\n        loss.backward()\n")
    assert not reasons(text, **{**LEFT, "last": ZERO}, calls="pass")
    reason, *_ = reasons(text, **LEFT, calls="pass")
    assert "train_generator() leaves some of another loss in critic" in reason


@pytest.mark.parametrize(
    "parts",
    [
        {"before": ZERO, "behind": "pass", "last": "pass"},
        {"before": "pass", "behind": ZERO, "last": ZERO},
        {"before": "pass", "behind": ZERO, "last": "critic.zero_grad()"},
    ],
    ids=["zeroed in front", "zeroed behind the other", "the module zeroed behind the other"],
)
@pytest.mark.parametrize("text", [FUNCTIONS, BLOCKS], ids=["of a function", "of another block"])
def test_a_step_that_finds_none_converts(text: str, parts: dict[str, str]) -> None:
    assert not reasons(text, **parts)


@pytest.mark.parametrize(
    "loss",
    [
        "with torch.no_grad():\n        wanted = critic(generator(z))\n    loss = (generator(z) - wanted).mean()",
        "loss = (generator(z) - critic(generator(z)).detach()).mean()",
        "loss = generator(z).mean()",
    ],
    ids=["without gradients", "detached", "of other modules"],
)
def test_a_loss_that_reaches_other_modules_leaves_none(loss: str) -> None:
    assert not reasons(FUNCTIONS, **LEFT, loss=loss)
