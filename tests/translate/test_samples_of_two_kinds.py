"""Data sets whose samples have a label, or a name in its place: what a loop does with a part says which it is."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, train=True):
        self.x = torch.linspace(-1, 1, 24).reshape(6, 4)
        self.y = torch.tensor([0, 1, 2, 0, 1, 2])
        self.train = train

    def __len__(self):
        return 6

    def __getitem__(self, i):
        {given}

model = nn.Linear(4, 3)
for p in model.parameters():
    nn.init.constant_(p, 0.1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
device = "cpu"

for x, y in DataLoader(Images(), batch_size=3):
    x, y = x.to(device), y.to(device)
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())

rows = []
with torch.no_grad():
    for x, name in DataLoader(Images(train=False), batch_size=3):
        for i, p in enumerate(model(x.to(device)).argmax(1).tolist()):
            rows.append((name[i], p))
print(rows)
"""
GIVEN = {
    "two returns": 'if self.train:\n            return self.x[i], self.y[i]\n        return self.x[i], f"image {i}"',
    "a choice": 'return (self.x[i], self.y[i]) if self.train else (self.x[i], f"image {i}")',
    "a part": 'return self.x[i], self.y[i] if self.train else f"image {i}"',
}


@pytest.mark.jax
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_part_is_an_array_where_it_is_computed_with(given: str) -> None:
    text = TEXT.format(given=given)
    converted = convert(text)

    assert not converted.gaps
    assert "x, y = np.asarray(x), np.asarray(y)" in converted.code
    assert printed(converted.code) == printed(text)
