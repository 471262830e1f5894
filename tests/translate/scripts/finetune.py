"""Only a new head on a frozen backbone is trained, in mixed precision where there is a GPU."""

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast

use_amp = torch.cuda.is_available()
dev = "cuda" if use_amp else "cpu"


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.Linear(6, 5), nn.Tanh())
        self.head = nn.Linear(5, 10)

    def forward(self, x):
        return self.head(self.body(x))


def batches(count):
    for i in range(count):
        x = torch.linspace(-1 - i, 1 + i, 12).sin().reshape(3, 4)
        yield x, x.sum(dim=1, keepdim=True)


losses = []
model = Backbone()
for param in model.parameters():
    param.requires_grad = False
# the head is new, so it is trained
model.head = nn.Linear(5, 1)
model.to(dev)
# train
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.head.parameters(), lr=0.05)
scaler = GradScaler(enabled=use_amp)
model.train()
for epoch in range(3):
    epoch_loss = 0.0
    for x, y in batches(4):
        x, y = x.to(dev), y.to(dev)
        with autocast(enabled=use_amp):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.head.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        epoch_loss += loss.detach().item()
    losses.append(epoch_loss)
