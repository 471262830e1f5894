"""Gradient scalers in checkpoints go: the loop runs in float32, and there is no state to save."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """
import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR


def train(model, optimizer: AdamW, *, scaler: torch.amp.GradScaler, verbose: bool):
    for i in range(3):
        loss = model(torch.ones(3, 2)).pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if verbose:
            print(loss.item())


def save(to, model, optimizer: AdamW, plan: CosineAnnealingLR | None = None, *, scaler: torch.amp.GradScaler, epoch=0):
    state = {"model": model.state_dict(), "epoch": epoch}
    STATE
    torch.save(state, to)


def resume(path, model, optimizer: AdamW, scaler: torch.amp.GradScaler) -> None:
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    LOAD


model = nn.Linear(2, 2)
optimizer = AdamW(model.parameters(), lr=0.1)
scheduler = CosineAnnealingLR(optimizer, T_max=4)
scaler = torch.amp.GradScaler("cpu", enabled=False)
for epoch in range(2):
    train(model, optimizer, scaler=scaler, verbose=True)
    scheduler.step()
    save("model.pt", model, optimizer, scheduler, scaler=scaler, epoch=epoch)
resume("model.pt", model, optimizer, scaler)
"""

STATES = (
    'state.update({"optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()})',
    'state["scaler"] = scaler.state_dict()',
    'state["scaler"] = scaler.state_dict() if scaler is not None else None',
    'if scaler is not None:\n        state["scaler"] = scaler.state_dict()',
    'state = {"scaler": scaler.state_dict(), **state}',
    'state = dict(state, **{"scaler": scaler.state_dict()})',
)
LOADS = (
    'scaler.load_state_dict(saved["scaler"])',
    'if "scaler" in saved:\n        scaler.load_state_dict(saved["scaler"])',
    'if scaler is not None and saved["scaler"] is not None:\n        scaler.load_state_dict(saved["scaler"])',
)


def source(state: str, load: str) -> str:
    return SOURCE.replace("STATE", state).replace("LOAD", load)


@pytest.mark.parametrize(("state", "load"), [(s, LOADS[0]) for s in STATES] + [(STATES[0], one) for one in LOADS[1:]])
def test_its_part_of_a_checkpoint_goes(state: str, load: str) -> None:
    translation = convert(source(state, load))
    assert [gap.reason for gap in translation.gaps] == []
    assert "scaler" not in translation.code


@pytest.mark.parametrize(
    ("state", "load"),
    [
        ("print(scaler.get_scale())", LOADS[0]),
        ("extra = scaler.state_dict()", LOADS[0]),
        ('state["scaler"] = scaler.state_dict()', 'scaler.load_state_dict(saved.pop("scaler"))'),
    ],
)
def test_what_reads_its_state_stays(state: str, load: str) -> None:
    assert any("Gradient scaling" in gap.reason for gap in convert(source(state, load)).gaps)


def test_annotations_name_what_stands_there() -> None:
    code = convert(source(STATES[0], LOADS[0])).code
    assert "def train(model, optimizer: nnx.Optimizer, *, verbose: bool):" in code
    assert "def save(to, model, optimizer: nnx.Optimizer, plan=None, *, epoch=0):" in code
    assert "def resume(path, model, optimizer: nnx.Optimizer) -> None:" in code


def test_a_schedule_is_annotated_and_loaded_with_a_note() -> None:
    translation = convert(
        "import torch\nfrom torch.optim.lr_scheduler import LRScheduler, StepLR\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "def make() -> LRScheduler:\n    return StepLR(optimizer, 2)\n"
        "scheduler = StepLR(optimizer, 2)\n"
        'scheduler.load_state_dict(torch.load("s.pt")["scheduler"])\n'
    )
    assert "def make():" in translation.code
    assert any("as it is made here" in finding.reason for finding in translation.findings)
