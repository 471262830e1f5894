"""Gradient scalers that a program makes only if it is asked to: the branch without one stays, if both do the same."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import amp


def train_one_epoch(model, loader, optimizer, epoch, clip=None, scaler=None, verbose=True):
    for x, y in loader:
        with amp.autocast(enabled=scaler is not None):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            if clip is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            # without scaling
            optimizer.step()


def main(args):
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = amp.GradScaler() if args.amp else None
    loader = [(torch.randn(4, 6), torch.zeros(4, dtype=torch.long))]
    for epoch in range(3):
        train_one_epoch(model, loader, optimizer, epoch, args.clip, scaler)
    checkpoint = {"model": model.state_dict()}
    if scaler:
        checkpoint["scaler"] = scaler.state_dict()
    torch.save(checkpoint, "model.pth")


parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
parser.add_argument("--clip", type=float)
main(parser.parse_args())
"""


def test_the_branch_without_a_scaler_stays() -> None:
    translation = convert(SOURCE)
    assert not translation.gaps
    assert "def train_one_epoch(model, loader, optimizer, epoch, clip=None, verbose=True):" in translation.code
    assert "    train_one_epoch(model, loader, optimizer, epoch, args.clip)\n" in translation.code
    assert "scaler" not in translation.code.replace("GradScaler", "")
    assert translation.code.count("clip_grad_norm(grads, clip)") == 1
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "GradScaler()" in text)
    assert any("goes without it" in finding.reason and finding.span.line == line for finding in translation.findings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "    scaler = amp.GradScaler() if args.amp else None\n",
            "    scaler = None\n    if args.amp:\n        scaler = amp.GradScaler()\n",
        ),
        (
            "    scaler = amp.GradScaler() if args.amp else None\n",
            "    if args.amp:\n        scaler = amp.GradScaler()\n    else:\n        scaler = None\n",
        ),
        ("args.clip, scaler)", "scaler=scaler, clip=args.clip)"),
        ("        if scaler is not None:\n            scaler.scale", "        if scaler:\n            scaler.scale"),
        ("    if scaler:\n", "    if scaler is not None:\n"),
        ("args.clip, scaler)\n", "args.clip, scaler)\n        train_one_epoch(model, loader, optimizer, epoch)\n"),
        ("clip, scaler)\n", "clip, scaler)\n        train_one_epoch(model, loader, optimizer, 0, 1, None)\n"),
    ],
)  # fmt: skip
def test_in_whatever_way_it_is_asked_for(old: str, new: str) -> None:
    assert old in SOURCE
    translation = convert(SOURCE.replace(old, new))
    assert not translation.gaps
    assert "scaler" not in translation.code.replace("GradScaler", "")


def test_each_branch_may_hold_the_forward_pass() -> None:
    body = SOURCE.split("        with amp.autocast", 1)[1].split("\n\n\ndef main", 1)[0]
    branches = """        optimizer.zero_grad()
        if scaler is not None:
            with amp.autocast():
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(loss.item())"""
    source = SOURCE.replace(f"        with amp.autocast{body}", branches)
    assert source != SOURCE
    translation = convert(source)
    assert not translation.gaps
    assert translation.code.count(" = bound_jit(train_step, model, optimizer)(x, y)") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # clipped with a scaler only: which of the two is meant isn't known
        ("            if clip is not None:\n                nn", "            if False:\n                nn"),
        ("nn.utils.clip_grad_norm_(model.parameters(), clip)\n            scaler", "pass\n            scaler"),
        ("            scaler.update()\n", "            scaler.update()\n            print(scaler.get_scale())\n"),
        ("        optimizer.zero_grad()\n", "        print(scaler)\n        optimizer.zero_grad()\n"),
        ("loader, optimizer, epoch, args.clip, scaler)\n", "loader, optimizer, epoch, args.clip, *[scaler])\n"),
        ("    checkpoint = {", "    work = train_one_epoch\n    checkpoint = {"),
    ],
)  # fmt: skip
def test_other_uses_stay(old: str, new: str) -> None:
    assert old in SOURCE
    translation = convert(SOURCE.replace(old, new))
    assert translation.gaps
    assert "if scaler" in translation.code
