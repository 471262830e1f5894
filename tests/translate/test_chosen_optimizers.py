"""Optimizers that are chosen by name, by a condition or from a dict have branches; settings in dicts are keywords."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp import convert

from .side_by_side import sides

PROGRAM = """\
import argparse
import torch
from torch import nn, optim

args = argparse.Namespace(name="Adam", lr=0.05)
x = torch.linspace(-1, 1, 24).reshape(8, 3)
model = nn.Linear(3, 2)
nn.init.constant_(model.weight, 0.3)
nn.init.constant_(model.bias, 0.1)
{lines}
losses = []
for i in range(4):
    optimizer.zero_grad()
    loss = (model(x) - 3).pow(2).mean()
    loss.backward()
    optimizer.step()
    {step}
    losses.append(loss.item())
"""
GIVEN = "(model.parameters(), lr=args.lr)"
FORMS = {
    "getattr": f"optimizer = getattr(torch.optim, args.name){GIVEN}",
    "a class of a name": f"cls = getattr(optim, args.name)\noptimizer = cls{GIVEN}",
    "a sure name": f'name = "SGD"\noptimizer = getattr(optim, name){GIVEN}',
    "the package's dict": f"optimizer = optim.__dict__[args.name]{GIVEN}",
    "an imported package": "from importlib import import_module\n"
    f"made = getattr(import_module('torch.optim'), args.name)\noptimizer = made{GIVEN}",
    "a dict": f'OPTIMIZERS = {{"Adam": optim.Adam, "SGD": optim.SGD}}\noptimizer = OPTIMIZERS[args.name]{GIVEN}',
    "a condition": f"optimizer = (optim.SGD if args.lr > 1 else optim.RMSprop){GIVEN}",
    "settings": "settings = {'lr': 0.05, 'weight_decay': 1e-3}\n"
    "optimizer = optim.AdamW(model.parameters(), **settings)",
    "both": 'c = {"type": "Adam", "args": {"lr": 0.05, "amsgrad": True}}\n'
    'optimizer = getattr(optim, c["type"])(model.parameters(), **c["args"])',
}


@pytest.mark.parametrize("name", FORMS)
def test_what_is_chosen_trains(name: str) -> None:
    pair = sides(PROGRAM.format(lines=FORMS[name], step="pass"), "chosen_optimizers")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


def test_a_schedule_is_chosen_too() -> None:
    lines = f'optimizer = optim.SGD{GIVEN}\nscheduler = getattr(optim.lr_scheduler, "StepLR")(optimizer, step_size=2)'
    pair = sides(PROGRAM.format(lines=lines, step="scheduler.step()"), "chosen_schedules")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


def test_a_name_that_the_file_lacks_is_an_error_and_said() -> None:
    translation = convert(PROGRAM.format(lines=FORMS["getattr"], step="pass"))
    assert 'raise ValueError(f"no branch for {args.name}")' in translation.code
    assert any("Those that the file names have a branch: Adam." in finding.reason for finding in translation.findings)


@pytest.mark.parametrize(
    "lines",
    [
        FORMS["getattr"].replace("args.name", "args.pop()"),
        FORMS["a dict"].replace("optim.SGD", "print"),
        FORMS["a dict"].replace("}\n", "}\nOPTIMIZERS['Adam'] = optim.SGD\n"),
        FORMS["settings"].replace("}\n", "}\nsettings['eps'] = 1e-3\n"),
        FORMS["settings"].replace("}\n", "}\nsettings.update(eps=1e-3)\n"),
        FORMS["settings"].replace("}\n", "}\nprint(settings)\n"),
    ],
    ids=["a call", "another function", "another class", "an item more", "updated", "handed on"],
)
def test_what_is_not_sure_stays(lines: str) -> None:
    assert convert(PROGRAM.format(lines=lines, step="pass")).gaps
