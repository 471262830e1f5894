import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, features=20, hidden=16, latent=3):
        super().__init__()
        self.encode = nn.Linear(features, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.log_var = nn.Linear(hidden, latent)
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, features))

    def forward(self, x):
        h = F.relu(self.encode(x))
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        return self.decode(z), mean, log_var


def loss_function(logits, x, mean, log_var):
    likelihood = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
    return likelihood + divergence
