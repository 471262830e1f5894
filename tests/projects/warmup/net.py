import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words, tags, width=8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, tags)

    def forward(self, ids):
        return self.out(self.norm(self.embed(ids)))

    def optimizers(self, lr, decay):
        named = {name: p for name, p in self.named_parameters() if p.requires_grad}
        matrices = [p for _, p in named.items() if p.dim() > 1]
        vectors = [p for _, p in named.items() if p.dim() <= 1]
        groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr)
