"""Stripes told apart: one function for training and validation batches, a loader wrapped by a function, a lambda layer."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
images = torch.rand(96, 64)
labels = (images[:, :32].sum(1) > images[:, 32:].sum(1)).long()


def as_images(x, y):
    return x.view(-1, 1, 8, 8), y


class Mapped:
    """A loader whose batches go through a function."""

    def __init__(self, loader, function):
        self.loader = loader
        self.function = function

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield self.function(*batch)


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def on_batch(model, criterion, x, y, optimizer=None):
    loss = criterion(model(x), y)

    if optimizer is not None:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return loss.item(), len(x)


def fit(epochs, model, criterion, optimizer, training, validation):
    for epoch in range(epochs):
        model.train()
        for x, y in training:
            on_batch(model, criterion, x, y, optimizer)
        model.eval()
        with torch.no_grad():
            losses, sizes = zip(*[on_batch(model, criterion, x, y) for x, y in validation])
        print(epoch, np.sum(np.multiply(losses, sizes)) / np.sum(sizes))


training = Mapped(DataLoader(TensorDataset(images[:64], labels[:64]), batch_size=16, shuffle=True), as_images)
validation = Mapped(DataLoader(TensorDataset(images[64:], labels[64:]), batch_size=32), as_images)
model = nn.Sequential(
    nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(8, 2, kernel_size=3, stride=2, padding=1),
    nn.AdaptiveAvgPool2d(1),
    Apply(lambda x: x.view(x.size(0), -1)),
)
fit(3, model, F.cross_entropy, optim.SGD(model.parameters(), lr=0.2, momentum=0.9), training, validation)
x, y = next(iter(validation))
print((model(x).argmax(dim=1) == y).float().mean().item())
