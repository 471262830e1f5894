"""Objects that a data pipeline is made with stay in PyTorch, and so do the arguments of their methods."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SCALED = """\
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Scaler:
    def fit(self, x):
        self.mean, self.std = x.mean(dim=0, keepdim=True), x.std(dim=0, unbiased=False, keepdim=True)
        return self
    def transform(self, x):
        return (x - self.mean) / self.std
    def inverse(self, x):
        return x * self.std + self.mean

raw = torch.from_numpy(np.ones((8, 3)))
scaler = Scaler().fit(raw)
scaled = scaler.transform(raw)
loader = DataLoader(TensorDataset(scaled), batch_size=4)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for (x,) in loader:
    loss = net(x.float()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(scaler.inverse(scaled).sum(), net(scaled.float()))
"""


def test_a_method_of_an_object_that_stays_takes_tensors_and_gives_an_array() -> None:
    done = convert(SCALED)
    assert not done.gaps
    assert "jnp.asarray(scaler.inverse(scaled)).sum()" in done.code
    assert "net(jnp.asarray(scaled, dtype=jnp.float32))" in done.code


FED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def scaled(x):
    return (x - torch.mean(x)) / torch.std(x)


class Items(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, i):
        return scaled(torch.tensor(self.rows[i]))

    def __len__(self):
        return len(self.rows)


class Net({base}):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.fc = nn.Linear(3, 2)

    def collate(self, rows):
        return {made}

    def loader(self):
        return DataLoader(Items(self.rows), collate_fn=self.collate)

    def compute(self, x):
        return {value}
"""
STACKED = "torch.stack([torch.as_tensor(r) for r in rows])"


@pytest.mark.parametrize("base", ["nn.Module", "object"])
def test_a_method_that_feeds_a_loader_stays(base: str) -> None:
    done = convert(FED.format(base=base, made=STACKED, value="torch.tanh(x)"))
    assert not done.gaps and STACKED in done.code and "jnp.tanh(x)" in done.code
    assert convert(done.code).code == done.code


def test_a_method_that_feeds_a_loader_and_runs_a_module_is_said() -> None:
    (gap,) = convert(FED.format(base="nn.Module", made=f"self.fc({STACKED})", value="torch.tanh(x)")).gaps
    assert "the data pipeline, which stays in PyTorch, calls this method" in gap.reason


@pytest.mark.parametrize(
    ("value", "gaps"),
    [("scaled(torch.tanh(x))", 1), ("torch.tanh(scaled(x))", 1), ("scaled(next(iter(Items(self.rows))))", 0)],
)
def test_what_stays_with_the_pipeline_and_is_given_an_array_is_said(value: str, gaps: int) -> None:
    reported = convert(FED.format(base="object", made=STACKED, value=value)).gaps
    assert [g.reason.split()[0] for g in reported] == ["scaled"] * gaps
