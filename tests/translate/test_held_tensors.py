"""Optimizers of bare tensors that an object holds: the temperature of an agent, ``self.log_alpha``."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

AGENT = """\
import copy
import torch
from torch import nn


class Agent:
    def __init__(self, auto=True):
        self.actor = nn.Linear(3, 2)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=0.01)
        {made}
        self.alpha_optimizer = torch.optim.Adam({leaves}, lr=0.05)
        {kept}

    def update_actor(self, x):
        log_prob = torch.log_softmax(self.actor(x), -1)
        actor_loss = ({alpha} * log_prob).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        return log_prob

    def update_alpha(self, log_prob):
        alpha_loss = -({read} * (log_prob + 2).detach()).mean()
        {before}
        alpha_loss.backward()
        self.alpha_optimizer.step()
        {behind}

    def other(self, value):
        {other}


agent = Agent()
for i in range(3):
    agent.update_alpha(agent.update_actor(torch.randn(5, 3)))
    print(agent.log_alpha.item())
{last}
"""
PARTS = {
    "made": "self.log_alpha = torch.zeros(1, requires_grad=True)",
    "leaves": "[self.log_alpha]",
    "alpha": "self.log_alpha.exp()",
    "read": "self.log_alpha",
    "before": "self.alpha_optimizer.zero_grad()",
    "kept": "pass",
    "behind": "pass",
    "other": "pass",
    "last": "pass",
}
STEP = """\
@jax.jit(static_argnames="alpha_optimizer")
def update_alpha_step(log_alpha, alpha_opt_state, log_prob, alpha_optimizer):
    def loss_fn(log_alpha):
        return -(log_alpha * jax.lax.stop_gradient(log_prob + 2)).mean()

    alpha_loss, grads = jax.value_and_grad(loss_fn)(log_alpha)
    updates, alpha_opt_state = alpha_optimizer.update(grads, alpha_opt_state, log_alpha)
    log_alpha = optax.apply_updates(log_alpha, updates)
    return log_alpha, alpha_opt_state
"""


def converted(**parts: str) -> tuple[str, list[str]]:
    done = translate(AGENT.format(**{**PARTS, **parts}), Options(helpers="import"))
    return done.code, [gap.reason for gap in done.gaps]


def test_the_object_keeps_tensor_and_state() -> None:
    code, reasons = converted()
    assert not reasons
    assert STEP in code
    assert "self.alpha_optimizer = optax.adam(0.05)\n" in code
    assert "self.alpha_opt_state = self.alpha_optimizer.init(self.log_alpha)\n" in code
    assert "self.log_alpha, self.alpha_opt_state = update_alpha_step(\n" in code
    assert "self.log_alpha, self.alpha_opt_state, log_prob, self.alpha_optimizer\n" in code


SURE = {
    "a flag behind it": {"made": "self.log_alpha = torch.tensor(0.3)\n        self.log_alpha.requires_grad_(True)"},
    "a value of it is kept": {"kept": "self.alpha = self.log_alpha.exp().item()", "alpha": "self.alpha"},
    "written into": {"behind": "self.log_alpha.data.clamp_(-1, 1)"},
    "read from outside": {"last": "print(agent.log_alpha.exp().item())"},
    "another of the class": {"last": "twin = copy.deepcopy(agent)\ntwin.update_alpha(torch.randn(5, 2))"},
    "zeroed behind, others detach": {
        "before": "pass",
        "behind": "self.alpha_optimizer.zero_grad()",
        "alpha": "self.log_alpha.exp().detach()",
    },
    "an attribute of this name of another class": {
        "last": "class Other:\n    def __init__(self):\n        self.log_alpha = [1]\n        print([self.log_alpha])"
    },
}


@pytest.mark.parametrize("parts", SURE.values(), ids=SURE)
def test_it_may_be_read_and_written(parts: dict[str, str]) -> None:
    code, reasons = converted(**parts)
    assert not reasons
    assert "optax.apply_updates" in code


def test_two_tensors_are_a_tree() -> None:
    code, reasons = converted(
        made=f"{PARTS['made']}\n        self.shift = torch.zeros(1, requires_grad=True)",
        leaves="[self.log_alpha, self.shift]",
        read="self.shift + self.log_alpha",
    )
    assert not reasons
    assert "self.alpha_opt_state = self.alpha_optimizer.init((self.log_alpha, self.shift))" in code
    assert "    log_alpha, shift = optax.apply_updates((log_alpha, shift), updates)\n" in code


NEW = "self.log_alpha = torch.tensor([value], requires_grad=True)"
UNSURE = {
    "a tensor of another name": ({"kept": "self.temperature = self.log_alpha"}, "PyTorch's optimizer keeps"),
    "made anew": ({"other": NEW}, "self.log_alpha, which is more than one tensor"),
    "made anew from outside": ({"last": "agent.log_alpha = torch.ones(1)"}, "self.log_alpha, which is more than one"),
    "an optimizer made anew": (
        {"other": "self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=value)"},
        "which is",
    ),
    "gradients of another loss": (
        {"before": "pass", "behind": "self.alpha_optimizer.zero_grad()"},
        "update_actor() leaves some of another loss in self.log_alpha",
    ),
    "a value with its gradient": (
        {"kept": "self.alpha = 2 * self.log_alpha", "read": "self.alpha + self.log_alpha"},
        "It reads self.alpha, values of earlier calls, which carry no gradient in JAX",
    ),
}


@pytest.mark.parametrize(("parts", "reason"), UNSURE.values(), ids=UNSURE)
def test_what_the_step_can_not_give_back_stays(parts: dict[str, str], reason: str) -> None:
    code, reasons = converted(**parts)
    assert any(reason in one for one in reasons), reasons
    assert "self.log_alpha, self.alpha_opt_state = " not in code
