"""What a loop over batches goes over: loaders in one of two ways, objects that wrap one, what a function was given."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

def tqdm(batches):
    return batches

def shown(batches):
    return list(batches)

def to_device(data, device):
    if isinstance(data, (list, tuple)):
        return [to_device(x, device) for x in data]
    return data.to(device, non_blocking=True)

class DeviceDataLoader:
    def __init__(self, dl, device):
        self.dl = dl
        self.device = device
    def __iter__(self):
        for b in self.dl:
            yield to_device(b, self.device)

class Progress:
    def __init__(self, it):
        self.it = it
    def __iter__(self):
        return iter(self.it)

class Shifted(DataLoader):
    def __iter__(self):
        for x, y in super().__iter__():
            yield x + 1, y

class Parts:
    def __init__(self):
        self.parts = {{}}
    def put(self, name, loader):
        self.parts[name] = loader
    def get(self, name):
        return self.parts[name]

X = torch.linspace(-1, 1, 36).reshape(12, 3)
Y = X.sum(1, keepdim=True) ** 2
loader = DataLoader(TensorDataset(X, Y), batch_size=4)
net = nn.Linear(3, 1)
for p in net.parameters():
    nn.init.constant_(p, 0.1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def fit(net, opt, batches, verbose):
    for {loop}:
        x = x.float()
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        print(round(loss.item(), 4))

def check(net, batches):
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            total += F.l1_loss(net(x), y).item()
    return total

parts = Parts()
parts.put("train", loader)
for verbose in range(2):
    batches = {batches}
    fit(net, opt, batches, verbose)
    print(round(check(net, batches), 4))
"""
PLAIN = "x, y in batches"


@pytest.mark.parametrize(
    "loop",
    [
        "i, (x, y) in enumerate(shown(batches)) if verbose else enumerate(batches)",
        "i, (x, y) in enumerate(tqdm(batches)) if verbose == 2 else enumerate(batches)",
        "i, (x, y) in enumerate(tqdm(batches) if verbose == 2 else batches)",
        "x, y in (tqdm(batches) if verbose == 2 else batches)",
    ],
)
def test_it_goes_over_a_loader_in_one_of_two_ways(loop: str) -> None:
    source = PROGRAM.format(loop=loop, batches="loader")
    done = convert(source)
    assert not done.gaps
    assert printed(done.code) == printed(source)


@pytest.mark.parametrize(
    "batches",
    [
        'DeviceDataLoader(loader, torch.device("cpu"))',
        "Progress(loader)",
        "Shifted(loader.dataset, batch_size=4)",
        'parts.get("train")',
    ],
)
def test_it_goes_over_an_object_that_gives_the_batches_of_a_loader(batches: str) -> None:
    source = PROGRAM.format(loop=PLAIN, batches=batches)
    done = convert(source)
    assert not done.gaps
    assert printed(done.code) == printed(source)


def test_what_modules_go_over_is_no_loader() -> None:
    source = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 1)
    def forward(self, views):
        return [self.one(view) for view in views] + [total for view in views for total in [self.one(view).sum()]]
    def loop(self, views):
        out = []
        for view in views:
            out.append(self.one(view))
        return out

loader = DataLoader(TensorDataset(torch.ones(4, 3)), batch_size=2)
"""
    done = convert(source)
    assert not done.gaps
    assert "asarray" not in done.code


GIVEN_IN_PARTS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def to_loader(self, data):
        if isinstance(data, DataLoader):
            return data
        x, y = data
        return DataLoader(TensorDataset(x, y), batch_size=4)

    def fit(self, data):
        data = self.to_loader(data)
        for i, (x, y) in enumerate(data):
            loss = (self.net(x.float()) - y).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            print(i, round(loss.item(), 4))

x = torch.linspace(-1, 1, 36).reshape(12, 3)
y = x.sum(1, keepdim=True)
net = nn.Linear(3, 1)
for p in net.parameters():
    nn.init.constant_(p, 0.1)
trainer = Trainer(net)
trainer.fit((x[:8], y[:8]))
trainer.fit(DataLoader(TensorDataset(x, y), batch_size=6))
"""


def test_tensors_that_are_given_to_a_pipeline_in_a_tuple_stay_tensors() -> None:
    done = convert(GIVEN_IN_PARTS)
    assert not done.gaps
    assert printed(done.code) == printed(GIVEN_IN_PARTS)
