"""Programs that use an `accelerate.Accelerator` convert as the same programs without it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

PLAIN = """import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def exists(x):
    return x is not None


class Report:
    def __init__(self, model, accelerator=None):
        self.model, self.accelerator = model, accelerator


class Trainer:
    def __init__(self, model: nn.Module, loader: DataLoader, rate: float, half: bool = False):
        self.model = model
        self.loader = loader
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.report = Scores(self.model)

    @property
    def device(self):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def save(self, path):
        if not torch.distributed.get_rank() == 0:
            return
        scaler = None
        state = self.model.state_dict()
        torch.save({"model": state, "opt": self.opt.state_dict(), "scaler": scaler}, path)

    def load(self, path):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = torch.load(path, map_location=device)
        model = self.model
        model.load_state_dict(data["model"])
        self.opt.load_state_dict(data["opt"])

    def train(self, epochs: int):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.loader:
                x, y = x.to(device), y.to(device)
                with torch.autocast("cuda"):
                    loss = F.cross_entropy(self.model(x), y)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.opt.zero_grad()
            if torch.distributed.get_rank() == 0:
                print(epoch, loss.item())
"""
ACCELERATED = """import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


def exists(x):
    return x is not None


class Report:
    def __init__(self, model, accelerator=None):
        self.model, self.accelerator = model, accelerator


class Trainer:
    def __init__(self, model: nn.Module, loader: DataLoader, rate: float, half: bool = False):
        self.accelerator = Accelerator(
            split_batches=True,
            mixed_precision="fp16" if half else "no",  # as the GPU has it
        )
        self.accelerator.native_amp = half
        self.model = model
        self.loader = self.accelerator.prepare(loader)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.report = Report(self.model, accelerator=self.accelerator)
        self.model, self.opt = self.accelerator.prepare(self.model, self.opt)

    @property
    def device(self):
        return self.accelerator.device

    def save(self, path):
        if not self.accelerator.is_local_main_process:
            return
        scaler = self.accelerator.scaler.state_dict() if exists(self.accelerator.scaler) else None
        state = self.accelerator.get_state_dict(self.model)
        torch.save({"model": state, "opt": self.opt.state_dict(), "scaler": scaler}, path)

    def load(self, path):
        accelerator = self.accelerator
        device = accelerator.device
        data = torch.load(path, map_location=device)
        model = self.accelerator.unwrap_model(self.model)
        model.load_state_dict(data["model"])
        self.opt.load_state_dict(data["opt"])
        if exists(accelerator.scaler) and exists(data["scaler"]):
            accelerator.scaler.load_state_dict(data["scaler"])

    def train(self, epochs: int):
        accelerator = self.accelerator
        device = accelerator.device
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.loader:
                x, y = x.to(device), y.to(device)
                with accelerator.autocast():
                    loss = F.cross_entropy(self.model(x), y)
                accelerator.backward(loss)
                accelerator.wait_for_everyone()
                accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.opt.zero_grad()
            if accelerator.is_main_process:
                accelerator.print(epoch, accelerator.gather(loss).item())
"""
SCRIPT = """import torch
from accelerate import Accelerator, DistributedType
from torch import nn

{made}
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model, opt = accelerator.prepare(model, opt)
for step in range(10):
    opt.zero_grad()
    loss = model(torch.ones(2, 3)).pow(2).mean()
    {backward}
    opt.step()
"""


def test_a_trainer_converts_as_without_it() -> None:
    converted, plain = convert(ACCELERATED), convert(PLAIN.replace("Scores", "Report"))
    assert not converted.gaps
    assert "nnx.value_and_grad" in converted.code
    result, wanted = (one.code.partition("class Trainer")[2].split() for one in (converted, plain))
    assert result == wanted
    assert sum(note.name == "accelerate.Accelerator" for note in converted.notes) == 1


def test_a_script_converts_as_without_it() -> None:
    text = SCRIPT.format(made="accelerator = Accelerator(cpu=True)", backward="accelerator.backward(loss)")
    plain = text.replace("accelerator = Accelerator(cpu=True)\n", "").replace(
        "accelerator.backward(loss)", "loss.backward()"
    )
    plain = plain.replace("import Accelerator, ", "import ").replace(
        "model, opt = accelerator.prepare(model, opt)\n", ""
    )
    assert not convert(text).gaps
    assert convert(text).code.split() == convert(plain).code.split()


@pytest.mark.parametrize(
    ("made", "backward"),
    [
        ("accelerator = Accelerator(gradient_accumulation_steps=2)", "accelerator.backward(loss)"),
        ("accelerator = Accelerator(**settings)", "accelerator.backward(loss)"),
        ("accelerator = Accelerator()", "accelerator.save_state('here')\n    accelerator.backward(loss)"),
        ("accelerator = Accelerator()", "log(accelerator)\n    accelerator.backward(loss)"),
        ("accelerator = Accelerator()", "accelerator.backward(loss, retain_graph=True)"),
        ("accelerator = Accelerator()\nkind = Accelerator", "accelerator.backward(loss)"),
    ],
)
def test_what_nothing_says_without_it_keeps_it(made: str, backward: str) -> None:
    translation = convert(SCRIPT.format(made=made, backward=backward))
    assert "accelerator.prepare" in [gap.name for gap in translation.gaps]
