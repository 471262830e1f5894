import torch
from torch import nn
from torch.nn import functional as F


class Siamese(nn.Module):
    def __init__(self, features=8, hidden=16, dim=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, left, right):
        return self.encoder(left), self.encoder(right)


def contrastive_loss(left, right, same, margin=1.0):
    distance = F.pairwise_distance(left, right)
    return torch.mean(same * distance.pow(2) + (1 - same) * F.relu(margin - distance).pow(2))
