"""Programs that train nothing: freezing is without consequence there."""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

PROGRAM = """import torch
from torch import nn
{imported}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


def load():
    model = Net()
    for p in model.parameters():
        p.requires_grad = False
    return model.eval()


{run}"""
RUN = "model = load()\nwith torch.no_grad():\n    print(model(torch.ones(4, 3)))\n"


def test_what_is_frozen_is_so_anyway() -> None:
    done = convert(PROGRAM.format(imported="import os", run=RUN))
    assert not done.gaps
    assert "requires_grad" not in done.code
    assert any(note.name == "Tensor.requires_grad" for note in done.notes)


def test_what_is_frozen_is_counted_so() -> None:
    head = PROGRAM.format(imported="", run="").partition("def load")[0]
    count = "print(sum(p.numel() for p in model.parameters() if p.requires_grad))\n"
    done = convert(f"{head}model = Net()\nmodel.requires_grad_(False)\n{count}")
    assert not done.gaps
    assert "print(0)" in done.code
    assert convert(PROGRAM.format(imported="", run=f"model = load()\n{count}")).gaps  # not where another scope freezes


@pytest.mark.parametrize(
    ("imported", "run"),
    [
        ("", ""),  # no program: who imports it may train
        ("from lightning import Trainer", RUN),
        ("from .engine import fit", RUN),
        ("", f"{RUN}g = torch.autograd.grad(model(torch.ones(4, 3)).sum(), model.fc.weight)\n"),
        ("", f"{RUN}model(torch.ones(4, 3)).sum().backward()\n"),
        ("", f"{RUN}exec('import engine')\n"),
    ],
)
def test_what_may_be_trained_elsewhere_is_a_gap(imported: str, run: str) -> None:
    gaps = convert(PROGRAM.format(imported=imported, run=run)).gaps
    assert any("requires_grad" in f"{gap.name} {gap.reason}" for gap in gaps), gaps


def test_a_file_of_the_project_may_train() -> None:
    source = PROGRAM.format(imported="import tqdm", run=RUN)
    assert not translate(source, Options(resolve=lambda level, name: None)).gaps
    assert translate(
        source, Options(resolve=lambda level, name: "def fit(model): ..." if name == "tqdm" else None)
    ).gaps
    assert translate(source, Options(used_elsewhere=lambda names: {"load"} & set(names))).gaps
