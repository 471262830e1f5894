"""Files that are converted in part: another conversion reads the same of what stayed, and leaves it alone."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

TRAINER = """
from transformers import Trainer


class Loss(nn.Module):
    def forward(self, x):
        return x.sum()


class Own(Trainer):
    def __init__(self, model):
        super().__init__(model)
        self.loss = Loss()

    def step(self, x: torch.Tensor):
        return self.loss(torch.cat([x, x], dim=1))
"""
"""A class that stays, as it derives from what isn't in sight and holds a module."""

BATCH = """
class Base(nn.Module):
    def forward(self, batch: dict):
        return batch["x"]


class Model(Base):
    def evaluate(self, batch, outputs=None):
        if batch.get("mode", None) == "generate":
            self.labels = batch.pop("labels")
        output = outputs if outputs else self.forward(batch)
        return output.squeeze(dim=1)
"""
"""A batch that methods of dicts are called on, which a module is given."""

ATTACK = """
class Attack:
    def __init__(self, model):
        self.model = model

    def generate(self, image):
        self.model = self.model.cuda()
        return attacked(self.model, image)


def attacked(model, image):
    scores = model.forward(image)
    for i in range(3):
        scores[0, i].backward(retain_graph=True)
    return scores
"""
"""What is moved to a device and has a forward is a module."""

OPTIMIZER = """
from elsewhere import made


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches, schedule: torch.optim.lr_scheduler.LambdaLR):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    torch.hub.list(made)
"""

TYPED = """
from dataclasses import dataclass


@dataclass
class Graph:
    model: nn.Module


def exported(graph: Graph, dtype: torch.dtype):
    model = graph.model.eval().to(dtype)
    return torch.export.export(model, (), strict=False)
"""
"""A parameter that is said to be a dtype, in the words of the conversion."""

ITEM = """
from torch.utils.data import TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(10, 3), torch.arange(10))
x, y = data[torch.randint(len(data), (1,)).item()]
print(x.sum(), y)
"""
"""What item of a dataset is asked for, JAX computes."""

LOSSES = """
from torch.utils.data import DataLoader


class Loss(nn.Module):
    def forward(self, targets, prediction):
        out = {"loss": 0.0}
        return out


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.criterion = Loss()

    def train(self, loader: DataLoader, forces: bool):
        for graphs, targets in loader:
            for graph in graphs:
                graph.positions.requires_grad = forces
            losses = self.criterion(targets, self.model(graphs))
            self.optimizer.zero_grad()
            losses["loss"].backward()
            self.optimizer.step()
        print(losses["error"].cpu())
"""
"""A dict that starts with a number, to which losses are added."""

COLLATE = """
from torch.utils.data._utils import collate as copied


def collate(batch):
    first = batch[0]
    kind = type(first)
    if isinstance(first, torch.Tensor):
        if first.dim() == 0:
            batch = [x.view((1, 1)) for x in batch]
        return torch.stack(batch, 1, out=first.storage())
    if kind.__name__ == "ndarray":
        if copied.np_str_obj_array_pattern.search(first.dtype.str) is not None:
            raise TypeError(copied.default_collate_err_msg_format.format(first.dtype))
    raise TypeError(copied.default_collate_err_msg_format.format(kind))
"""
"""A function copied from PyTorch's pipeline, whose texts it uses: what they are given was left, in silence."""

STARRED = """
from torch.nn import *
from torch.export import export

LAYERS = [Linear, Conv2d]


def kind(layer):
    export(layer)
    return [isinstance(layer, one) for one in LAYERS]
"""
"""Copied helpers have the names of what an import of everything brought, which stays for what stays."""

PARTS = {
    "trainer": (TRAINER, "return self.loss(torch.cat([x, x], dim=1))"),
    "batch": (BATCH, "self.labels = batch.pop('labels')".replace("'", '"')),
    "attack": (ATTACK, "scores = model(image)"),
    "optimizer": (OPTIMIZER, "torch.hub.list(made)"),
    "typed": (TYPED, "model = graph.model.to(dtype)"),
    "item": (ITEM, "data[rngs.randint((1,), 0, len(data)).item()]"),
    "collate": (COLLATE, "batch = [x.reshape((1, 1)) for x in batch]"),
    "starred": (STARRED, "LAYERS = [Linear, Conv2d]"),
    "losses": (LOSSES, 'losses["loss"].backward()'),
}
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@pytest.mark.parametrize("name", PARTS)
def test_another_conversion_changes_nothing(name: str) -> None:
    source, kept = PARTS[name]
    once = convert(HEAD + source)
    assert kept in once.code
    again = convert(once.code)
    assert again.code == once.code


def test_a_loss_in_a_dict_that_starts_with_a_number_is_differentiated() -> None:
    gaps = convert(HEAD + LOSSES).gaps
    assert [gap.name for gap in gaps] == ["training loop"]
    assert 'print(losses["error"])' in convert(HEAD + LOSSES).code


def test_what_a_dict_is_asked_for_is_no_gap() -> None:
    assert not convert(HEAD + BATCH).gaps
