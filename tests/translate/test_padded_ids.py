"""Ids of bags, of another number in each batch: a step is compiled for few lengths, and gives the same numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from t2j_lsp import convert
from t2j_lsp.rules.helpers.embedding import padded_ids

from .training_sides import trained

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

rows = [([1, 2, 3], 0), ([4], 1), ([2, 2], 1), ([5, 0, 1, 3, 3, 2, 1], 0), ([1, 6], 0), ([], 1), ([3], 1), ([6, 6], 0)]


def collate(batch):
    text = [torch.tensor(ids, dtype=torch.int64) for ids, _ in batch]
    starts = torch.tensor([0] + [len(ids) for ids in text[:-1]]).cumsum(dim=0)
    return torch.cat(text), starts, torch.tensor([y for _, y in batch])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(7, 4, mode="MODE")
        self.fc = nn.Linear(4, 2)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


losses = []
loader = DataLoader(rows, batch_size=2, collate_fn=collate)
model = Classifier()
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for text, offsets, label in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(text, offsets), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
"""
PADDED = "        text, offsets, label = padded_ids(text), np.asarray(offsets), np.asarray(label)\n"


@pytest.mark.jax
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_padded_bags_train_as_those_of_pytorch(mode: str) -> None:
    run = trained(PROGRAM.replace("MODE", mode))
    assert PADDED in run.translation.code
    assert run.jax["train_step"].jitted_fn._cache_size() == 3  # rows of 16, 4 and 2


MOVED = PROGRAM.replace(
    "        optimizer.zero_grad()",
    '        text, offsets = text.to("cpu"), offsets.to("cpu")\n        optimizer.zero_grad()',
)
FUNCTION = PROGRAM.replace("def forward(self, text, offsets):", "def forward(self, ids, starts=None):").replace(
    "self.embedding(text, offsets)", "self.embedding(ids, offsets=starts)"
)


@pytest.mark.parametrize("source", [MOVED, FUNCTION])
def test_ids_are_padded_where_they_become_arrays(source: str) -> None:
    done = convert(source)
    assert not done.gaps
    assert "padded_ids(text)" in done.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("losses.append(loss.item())", "losses.append(loss.item() / text.shape[0])"),
        ("self.fc(self.embedding(text, offsets))", "self.fc(self.embedding(text, offsets)) / text.shape[0]"),
        ("self.embedding(text, offsets)", "self.embedding(text, offsets, per_sample_weights=None)"),
        ("self.embedding(text, offsets)", "self.embedding(text + 0, offsets)"),
        ("        optimizer.step()", "        optimizer.step()\n        print(text)"),
        ("self.embedding(text, offsets)", "self.embedding(text.view(2, -1))"),
        ("def forward(self, text, offsets):", "def forward(self, text, offsets):\n        text = text % 7"),
        ("model(text, offsets)", "model(text + 0, offsets)"),
    ],
)
def test_ids_that_something_else_reads_stay_as_they_are(old: str, new: str) -> None:
    assert old in PROGRAM
    assert "padded_ids(text)" not in convert(PROGRAM.replace(old, new)).code


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("nn.utils.rnn.pad_sequence(text, batch_first=True)", True),
        ("torch.stack(text)", False),
    ],
)
def test_a_pipeline_that_pads_to_each_batch_is_told_what_it_costs(made: str, said: bool) -> None:
    source = PROGRAM.replace("torch.cat(text)", made).replace("(text, offsets)", "(text)")
    notes = [one.reason for one in convert(source).notes if one.name == "collate"]
    assert len(notes) == 1
    assert ("Each length to which it pads a batch is compiled by itself" in notes[0]) == said


@pytest.mark.jax
@pytest.mark.parametrize(("size", "filled"), [(1, 1), (2, 2), (3, 4), (8, 8), (9, 16)])
def test_ids_are_filled_up_to_a_power_of_two(size: int, filled: int) -> None:
    row = np.asarray(padded_ids(jnp.arange(size)))
    assert row.tolist() == [*range(size), *[-1] * (filled - size)]


def test_ids_that_may_be_on_a_card_become_an_array_of_jax_before() -> None:
    assert "padded_ids(text)" in convert(PROGRAM).code
    on_card = PROGRAM.replace("torch.cat(text), starts", 'torch.cat(text).to("cuda"), starts')
    assert "padded_ids(jnp.asarray(text))" in convert(on_card).code
