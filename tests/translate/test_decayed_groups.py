"""Parameter groups that only say what is decayed: one transformation, whose decay has a mask."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
from torch import nn, optim

model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses = []
names = ("bias",)

# train
decayed = [p for n, p in model.named_parameters() if {condition}]
others = [p for n, p in model.named_parameters() if not ({condition})]
groups = [{{"params": decayed, "weight_decay": {first}}}, {{"params": others, "weight_decay": {second}}}]
optimizer = optim.{made}
{scheduler}
for step in range(6):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {step}
    losses.append(loss.item())
"""
NAMED = "not any(name in n for name in names)"


@pytest.mark.parametrize("condition", ["p.ndim > 1", NAMED, "n.endswith('weight')"])
@pytest.mark.parametrize(("first", "second"), [(0.2, 0.0), (0.0, 0.2)])
@pytest.mark.parametrize("made", ["SGD(groups, lr=0.1, momentum=0.9)", "AdamW(groups, lr=0.1)"])
def test_the_decay_has_a_mask(condition: str, first: float, second: float, made: str) -> None:
    source = SOURCE.format(condition=condition, first=first, second=second, made=made, scheduler="", step="")
    code = trained(source).translation.code
    assert "multi_transform(" not in code and "mask=" in code


@pytest.mark.parametrize("made", ["SGD(groups, lr=0.1)", "AdamW(groups, lr=0.1)"])
def test_its_rate_follows_a_schedule(made: str) -> None:
    scheduler = "scheduler = optim.lr_scheduler.StepLR(optimizer, 2)"
    kinds = {"condition": "p.ndim > 1", "first": 0.2, "second": 0.0, "made": made}
    source = SOURCE.format(scheduler=scheduler, step="scheduler.step()", **kinds)
    code = trained(source, tolerance=1e-6).translation.code
    assert "multi_transform(" not in code and "inject_hyperparams" not in code and "mask=" in code


@pytest.mark.parametrize(("first", "second"), [(0.2, 0.1), (0.0, 0.0)])
def test_groups_that_both_decay_or_neither_have_transformations_of_their_own(first: float, second: float) -> None:
    kinds = {"condition": "p.ndim > 1", "first": first, "second": second, "made": "SGD(groups, lr=0.1)"}
    assert "multi_transform(" in trained(SOURCE.format(scheduler="", step="", **kinds)).translation.code


def test_a_variable_that_the_function_would_hide_is_a_gap() -> None:
    kinds = {"condition": "not n.endswith(name)", "first": 0.2, "second": 0.0, "made": "SGD(groups, lr=0.1)"}
    source = SOURCE.format(scheduler="", step="", **kinds).replace("losses = []\n", 'losses, name = [], "bias"\n')
    assert convert(source).gaps
