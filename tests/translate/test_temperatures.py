"""Soft actor-critics: the temperature is updated behind the actor, on a condition, by what the actor's step gave."""

from __future__ import annotations

import re

import pytest

from t2j_lsp import convert

from .training_sides import trained

PROGRAM = """\
import torch
from torch import nn

actor, critic = nn.Linear(3, 2), nn.Linear(5, 1)
x = torch.linspace(-1, 1, 12).reshape(4, 3)
autotune, losses = True, []
# train
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=0.01)
if autotune:
    target, log_alpha = -2.0, torch.zeros(1, requires_grad=True)
    alpha = log_alpha.exp().item()
    a_optimizer = torch.optim.Adam([log_alpha], lr=0.1)
else:
    alpha = 0.2
for step in range(6):
    if step % 2 == 0:
        for _ in range(2):
            pi = actor(x).tanh()
            log_pi = pi.pow(2).sum(1, keepdim=True)
            {values}
            actor_loss = (alpha * log_pi - q).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            if autotune:
                {temperature}
                a_optimizer.zero_grad()
                alpha_loss.backward()
                a_optimizer.step()
                alpha = log_alpha.exp().item()
            losses += [actor_loss.item(), alpha]
"""
VALUES = "q = critic(torch.cat([x, pi], 1))"
WITHOUT_GRADIENT = """with torch.no_grad():
                    log_pi = actor(x).tanh().pow(2).sum(1, keepdim=True)
                alpha_loss = (-log_alpha * (log_pi + target)).mean()"""


@pytest.mark.parametrize(
    "temperature", [WITHOUT_GRADIENT, "alpha_loss = (-log_alpha.exp() * (log_pi + target).detach()).mean()"]
)
def test_it_is_a_step_of_its_own(temperature: str) -> None:
    run = trained(PROGRAM.format(values=VALUES, temperature=temperature), ["actor", "critic"])
    assert len(re.findall(r"^@(?:nnx|jax)\.jit|\bbound_jit\(\s*\w+_step", run.translation.code, re.MULTILINE)) == 2
    assert run.jax["alpha"] < 0.9


def test_what_a_block_gives_itself_is_not_asked_for() -> None:
    """``q`` of the block without gradients is another value in front of it, and the step takes none."""
    block = "with torch.no_grad():\n                q = critic(torch.cat([x, pi], 1))\n                q = q * 2"
    run = trained(PROGRAM.format(values=block, temperature=WITHOUT_GRADIENT), ["actor", "critic"])
    steps = [line for line in run.translation.code.splitlines() if line.startswith("def ") and "critic" in line]
    assert len(steps) == 1 and not re.search(r"\bq\b", steps[0]), steps


def test_a_temperature_that_moves_the_actor_is_none_of_its_own() -> None:
    done = convert(PROGRAM.format(values=VALUES, temperature="alpha_loss = (-log_alpha * (log_pi + target)).mean()"))
    assert [gap.name for gap in done.gaps] == ["training loop"]
