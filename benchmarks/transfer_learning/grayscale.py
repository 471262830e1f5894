"""Two networks with other first and last layers, of one channel."""

import torch
from torch import nn
from torchvision import models

torch.manual_seed(0)
model = models.mobilenet_v3_small(weights=None)
model.features[0][0] = nn.Conv2d(1, 16, kernel_size=3, stride=2, padding=1, bias=False)
model.classifier[3] = nn.Linear(model.classifier[3].in_features, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
x, y = torch.randn(4, 1, 32, 32), torch.tensor([0, 1, 2, 3])
for step in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
