"""What loops take for batches: of loaders that something wraps, and of generators that yield numbers."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

from .printed import printed

WRAPPED = """
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Wrapped:
    def __init__(self, loader, func):
        self.loader = loader
        self.func = func

    def __iter__(self):
        for batch in self.loader:
            yield self.func(*batch)

def flat(x, y):
    return x.view(-1, 4), y

def loss_batch(model, xb, yb, opt=None):
    loss = F.cross_entropy(model(xb), yb)
    if opt is not None:
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item(), len(xb)

def fit(model, opt, train_dl, valid_dl):
    for xb, yb in train_dl:
        loss_batch(model, xb, yb, opt)
    with torch.no_grad():
        print([round(loss, 4) for loss, _ in [loss_batch(model, xb, yb) for xb, yb in valid_dl]])

data = TensorDataset(torch.linspace(-1, 1, 24).reshape(6, 2, 2), torch.tensor([0, 1, 2, 0, 1, 2]))
loader = DataLoader(data, batch_size=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
for p in model.parameters():
    nn.init.constant_(p, 0.1)
opt = optim.SGD(model.parameters(), lr=0.1)
fit(model, opt, loader, loader)
loader = Wrapped(loader, flat)
fit(model, opt, loader, loader)
"""

NUMBERS = """
import torch
from tqdm import tqdm
from torch import nn, optim

def batches():
    for b in range(3):
        rows = [[b, 1, 2], [2, 0, b]]
        yield [row[:-1] for row in rows], [row[-1] for row in rows]

model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 5))
for p in model.parameters():
    nn.init.constant_(p, 0.1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
bar = tqdm(batches(), total=3)
for batch in bar:
    words, targets = batch
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.tensor(words, dtype=torch.long)), torch.tensor(targets))
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4))
"""


def test_a_function_that_is_given_a_loader_and_what_wraps_one_takes_arrays_of_both() -> None:
    result = convert(WRAPPED)
    assert not result.gaps
    assert printed(result.code) == printed(WRAPPED)


@pytest.mark.parametrize("bar", ["tqdm(batches(), total=3)", "batches()"])
def test_numbers_that_a_generator_yields_are_no_tensors(bar: str) -> None:
    text = NUMBERS.replace("tqdm(batches(), total=3)", bar)
    result = convert(text)
    assert not result.gaps
    assert "jnp.array(words, dtype=jnp.int32)" in result.code and "jax.tree" not in result.code
