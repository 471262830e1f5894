"""Objects that a data pipeline is made with stay in PyTorch, and so do the arguments of their methods."""

from __future__ import annotations

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
    assert "net(jnp.asarray(scaled)" in done.code
