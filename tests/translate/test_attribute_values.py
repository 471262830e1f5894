"""Values of a step that an object keeps: ``self.loss_D = ...`` in the methods of a class that trains."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import Translation
from t2j_lsp.translate import pipeline

PIX2PIX = """\
import torch
import torch.nn as nn


class Model:
    def __init__(self):
        self.netG, self.netD = nn.Linear(3, 3), nn.Linear(6, 1)
        self.crit = nn.BCEWithLogitsLoss()
        self.optimizer_G = torch.optim.Adam(self.netG.parameters())
        self.optimizer_D = torch.optim.Adam(self.netD.parameters())
        self.logged = []

    def set_input(self, pair):
        self.real_A, self.real_B = pair

    def forward(self):
        self.fake_B = self.netG(self.real_A)

    def backward_D(self):
        pred_fake = self.netD(torch.cat((self.real_A, self.fake_B), 1).detach())
        self.loss_D_fake = self.crit(pred_fake, torch.zeros_like(pred_fake))
        pred_real = self.netD(torch.cat((self.real_A, self.real_B), 1))
        self.loss_D_real = self.crit(pred_real, torch.ones_like(pred_real))
        self.loss_D = (self.loss_D_fake + self.loss_D_real) * 0.5
        self.loss_D.backward()

    def backward_G(self):
        pred_fake = self.netD(torch.cat((self.real_A, self.fake_B), 1))
        self.loss_G = self.crit(pred_fake, torch.ones_like(pred_fake))
        self.loss_G.backward()

    def log(self):
        self.logged.append({logged})

    def optimize_parameters(self):
        self.forward()
        self.optimizer_D.zero_grad()
        self.backward_D()
        {between}
        self.optimizer_D.step()
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()


model = Model()
for _ in range(3):
    model.set_input((torch.rand(2, 3), torch.rand(2, 3)))
    model.optimize_parameters()
    print(model.loss_G.item(), model.loss_D_fake.item())
"""


def test_a_step_computes_with_variables_which_the_object_keeps() -> None:
    done = convert(PIX2PIX.format(logged="1", between="pass"))
    assert not done.gaps, done.gaps
    method = done.code[done.code.index("def optimize_parameters") :]
    first, second = method.index("netD_step, "), method.index("netG_step, ")
    assert first < second < method.index("self.loss_D_fake = loss_D_fake\n")
    for name in ("fake_B", "loss_D_real", "loss_D", "loss_G"):
        assert f"        self.{name} = {name}\n" in method


def test_a_text_with_gaps_is_translated_as_a_bounded_number_of_others_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts: list[str] = []
    translated = pipeline._translated

    def noted(source: str, *rest: Any, **given: Any) -> Translation:
        texts.append(source)
        return translated(source, *rest, **given)

    monkeypatch.setattr(pipeline, "_translated", noted)
    assert convert(PIX2PIX.format(logged="self.loss_D_real.item()", between="self.log()")).gaps
    assert 2 < len(texts) == len(set(texts)) <= pipeline.MOST_TEXTS + 1


@pytest.mark.parametrize(
    ("logged", "between"),
    [
        ("self.loss_D_real.item()", "self.log()"),
        ("1", "show(self)"),
        ("1", "if self.loss_D.item() > 9: return"),
    ],
    ids=["read by another method", "handed on", "left early"],
)
def test_what_may_read_the_object_meanwhile_keeps_the_attributes(logged: str, between: str) -> None:
    done = convert(PIX2PIX.format(logged=logged, between=between))
    assert [gap.code for gap in done.gaps][:1] == ["training-loop"], done.gaps
    assert "self.loss_D_real = loss_D_real" not in done.code


NESTED = """\
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor = nn.Linear(3, 2)
        self.optimizer = torch.optim.Adam(self.actor.parameters())
        self.actor_loss = torch.zeros(1)

    def learn(self, x, n):
        {head}
            {first}
            self.actor_loss = self.actor(x).square().mean()
            self.optimizer.zero_grad()
            self.actor_loss.backward()
            self.optimizer.step()
            {last}
        {behind}


agent = Agent()
for i in range(4):
    agent.learn(torch.randn(5, 3), i)
    print(agent.actor_loss.item())
"""
REPEATED, DELAYED = "for _ in range(2):", "if n % 2 == 0:"


def nested(head: str, first: str = "pass", last: str = "pass", behind: str = "pass") -> Translation:
    return convert(NESTED.format(head=head, first=first, last=last, behind=behind))


@pytest.mark.parametrize("head", [REPEATED, DELAYED, "while n < 0:"])
def test_a_block_of_a_method_keeps_them_at_its_own_end(head: str) -> None:
    done = nested(head)
    assert not done.gaps, done.gaps
    assert "            actor_loss = bound_jit(train_step, self.actor, self.optimizer)(x)\n" in done.code
    assert "            pass\n            self.actor_loss = actor_loss\n        pass\n" in done.code


def test_blocks_that_end_together_keep_theirs_from_the_inside_out() -> None:
    inner = "if n % 2 == 0:\n                self.norm = self.actor(x).norm()\n                print(self.norm.item())"
    done = nested(REPEATED, last=inner)
    assert not done.gaps, done.gaps
    kept = "                self.norm = norm\n            self.actor_loss = actor_loss\n"
    assert kept in done.code, done.code


def test_what_is_read_behind_the_block_is_the_objects() -> None:
    done = nested(DELAYED, behind="print(self.actor_loss.item())")
    assert not done.gaps
    assert "        print(self.actor_loss.item())\n" in done.code


@pytest.mark.parametrize(
    "parts",
    [{"last": "if n > 5:\n                break"}, {"first": "print(self.actor_loss.item())"}],
    ids=["left early", "read in front of it"],
)
def test_a_loop_that_may_need_the_value_before_stays(parts: dict[str, str]) -> None:
    done = nested(REPEATED, **parts)
    assert any("assigns the attribute self.actor_loss" in gap.reason for gap in done.gaps)
