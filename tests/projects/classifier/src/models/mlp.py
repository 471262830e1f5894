import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, num_classes=4, hidden=(32, 16)):
        super().__init__()
        dims = [3 * 8 * 8, *hidden]
        layers = []
        for a, b in zip(dims[:-1], dims[1:]):
            layers += [nn.Linear(a, b), nn.GELU()]
        self.net = nn.Sequential(*layers, nn.Linear(dims[-1], num_classes))

    def forward(self, x):
        return self.net(torch.flatten(x, 1))
