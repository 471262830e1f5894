"""Gradient scalers that a function is handed go, with its parameter: the loop runs in float32."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast


def train(model, loader, optimizer, scaler, epoch, clip=1.0):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast(enabled=scaler is not None):
            loss = F.cross_entropy(model(x), y)
        if scaler is not None:
            # scaled
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()


model = nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = GradScaler()
loader = [(torch.randn(4, 6), torch.zeros(4, dtype=torch.long))]
for epoch in range(3):
    train(model, loader, optimizer, scaler, epoch)
"""


def test_a_scaler_goes_with_the_parameter_that_it_is_handed_to() -> None:
    translation = convert(SOURCE)
    assert not translation.gaps
    assert "def train(model, loader, optimizer, epoch, clip=1.0):" in translation.code
    assert "    train(model, loader, optimizer, epoch)\n" in translation.code
    assert (
        "scale = jnp.minimum(clip / (optax.tree.norm(grads) + 1e-6), 1.0)" in translation.code
    )  # of the branch with a scaler
    line = SOURCE.splitlines().index("scaler = GradScaler()") + 1
    assert any("goes without it" in finding.reason and finding.span.line == line for finding in translation.findings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (", scaler, epoch)\n", ", scaler if epoch else None, epoch)\n"),
        ("    train(model", "    train(model, loader, optimizer, None, epoch)\n    train(model"),
        ("scaler = GradScaler()", "scaler = GradScaler() if torch.cuda.is_available() else None"),
        ("scaler.update()", "print(scaler.get_scale())"),
        ("loader = [", "work = train\nloader = ["),
        ("loader = [", "if len(model.weight) > 2:\n    scaler = None\nloader = ["),
    ],
)  # fmt: skip
def test_a_scaler_that_may_be_none_or_is_read_stays(old: str, new: str) -> None:
    assert old in SOURCE
    translation = convert(SOURCE.replace(old, new))
    assert translation.gaps


TRAINER = """
import torch
from torch import nn


class Trainer:
    def __init__(self, model, use_amp=False, clip=0.5):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
        self.use_amp, self.clip = use_amp, clip
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.use_amp)
        {more}

    def epoch(self, data):
        for x, y in data:
            with torch.autocast("cpu", enabled=self.use_amp):
                out = self.model(x)
            terms = {{"total": ((out - y) ** 2).mean()}}
            self.opt.zero_grad()
            self.scaler.scale(terms["total"]).backward()
            {clip}
            self.scaler.step(self.opt)
            self.scaler.update()
            print(terms["total"].item())


Trainer(nn.Linear(3, 2)).epoch([(torch.ones(4, 3), torch.ones(4, 2))])
"""
CLIPS = {
    "none": "",
    "always": "self.scaler.unscale_(self.opt); nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)",
    "perhaps": "if self.clip > 0: self.scaler.unscale_(self.opt); "
    "nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)",
}


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
def test_a_scaler_that_an_object_holds_goes_with_what_it_was_for(clip: str) -> None:
    converted = convert(TRAINER.format(clip=clip, more="self.best = 0"))

    assert not converted.gaps
    assert "caler" not in converted.code.replace("GradScaler", "")
    assert ("clip_grad_norm(grads, self.clip)" in converted.code) == (
        clip != ""
    ) or "clip_by_global_norm" in converted.code


OTHER_USES = {
    "asked for": 'print(hasattr(self, "scaler"))',
    "kept": "self.parts = [self.scaler]",
    "read": "print(self.scaler.get_scale())",
}


@pytest.mark.parametrize("more", OTHER_USES.values(), ids=OTHER_USES)
def test_one_that_is_used_otherwise_stays(more: str) -> None:
    converted = convert(TRAINER.format(clip="", more=more))

    assert any("GradScaler" in gap.name for gap in converted.gaps)
    assert "self.scaler = torch.cuda.amp.GradScaler(" in converted.code
