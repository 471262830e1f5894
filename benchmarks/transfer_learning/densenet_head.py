"""A small DenseNet whose classifier is another."""

import torch
from torch import nn
from torchvision import models

torch.manual_seed(0)
model = models.DenseNet(growth_rate=8, block_config=(2, 2, 2), num_init_features=16)
num_ftrs = model.classifier.in_features
model.classifier = nn.Linear(num_ftrs, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
x, y = torch.randn(2, 3, 32, 32), torch.tensor([0, 1])
for step in range(2):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
