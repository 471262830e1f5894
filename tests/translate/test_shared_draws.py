"""A forward pass that two updates need is computed twice, on numbers that are drawn once."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

SOURCE = """import torch
from torch import nn

generator, discriminator = nn.Linear(4, 3), nn.Linear(3, 1)
optimizer_g = torch.optim.SGD(generator.parameters(), lr=0.1)
optimizer_d = torch.optim.SGD(discriminator.parameters(), lr=0.1)


def noise(count):
    return torch.randn(count, 4)


for step in range(3):
    fake = generator(torch.randn(5, 4))
    optimizer_d.zero_grad()
    loss_d = discriminator(fake.detach()).mean()
    loss_d.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_g = -discriminator(fake).mean()
    loss_g.backward()
    optimizer_g.step()
"""


def test_what_both_updates_see_is_drawn_once() -> None:
    code = translate(SOURCE).code
    assert code.count("rngs.normal((5, 4))") == 1
    assert "    noise2 = rngs.normal((5, 4))\n    fake = forward(nnx.clone(generator), noise2)\n" in code
    assert "fake = generator(noise2)\n" in code


@pytest.mark.parametrize("drawn", ["noise(5)", "nn.functional.normalize(noise(5))"])
def test_a_function_that_draws_is_not_called_twice(drawn: str) -> None:
    result = translate(SOURCE.replace("torch.randn(5, 4)", drawn))
    assert any("can't be computed twice surely" in gap.reason for gap in result.gaps), result.code


TRAINER = """import torch
from torch import nn


class Trainer:
    def __init__(self, latent):
        self.latent = latent
        self.generator, self.discriminator = nn.Linear(latent, 3), nn.Linear(3, 1)
        self.optimizer_g = torch.optim.SGD(self.generator.parameters(), lr=0.1)
        self.optimizer_d = torch.optim.SGD(self.discriminator.parameters(), lr=0.1)

    def train(self, count):
        for step in range(3):
            fake = self.generator(torch.randn(count, self.latent))
            self.optimizer_d.zero_grad()
            loss_d = self.discriminator(fake.detach()).mean()
            loss_d.backward()
            self.optimizer_d.step()
            self.optimizer_g.zero_grad()
            loss_g = -self.discriminator(fake).mean()
            loss_g.backward()
            self.optimizer_g.step()


Trainer(4).train(5)
"""


def test_in_front_of_the_steps_attributes_of_a_trainer_keep_their_names() -> None:
    result = translate(TRAINER)
    assert not result.gaps
    assert "noise = rngs.normal((count, self.latent))\n" in result.code
    assert "fake = forward(nnx.clone(self.generator), noise)\n" in result.code
    assert "fake = generator(noise)\n" in result.code


BOTH_LOSSES_FIRST = """import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(2, 1)
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=0.1)
        self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.1)

    def learn(self, x, a):
        value = self.critic(a).mean()
        with torch.no_grad():
            weights = torch.exp(self.critic(self.actor(x)))
        out = self.actor(x)
        actor_loss = (out * weights).sum()
        self.critic_optimizer.zero_grad()
        value.backward()
        self.critic_optimizer.step()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        return actor_loss.item()


Agent().learn(torch.ones(4, 3), torch.ones(4, 2))
"""


@pytest.mark.parametrize("shown", ["", "        print(out)\n"])
def test_what_only_the_later_of_two_updates_reads_moves_to_it(shown: str) -> None:
    """It stands in front of the first, and is written once unless something there reads it."""
    source = BOTH_LOSSES_FIRST.replace(
        "        self.critic_optimizer.zero_grad()\n", f"{shown}        self.critic_optimizer.zero_grad()\n"
    )
    result = translate(source)
    assert not result.gaps
    assert result.code.count("out = actor(x)") == 1
    assert result.code.count("out = forward(") == (1 if shown else 0)
