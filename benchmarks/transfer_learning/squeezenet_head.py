"""SqueezeNet with another last convolution."""

import torch
from torch import nn
from torchvision import models

torch.manual_seed(0)
model = models.squeezenet1_1(weights=None)
model.classifier[1] = nn.Conv2d(512, 3, kernel_size=(1, 1), stride=(1, 1))
model.num_classes = 3
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
criterion = nn.CrossEntropyLoss()
x, y = torch.randn(4, 3, 64, 64), torch.tensor([0, 1, 2, 0])
model.train()
for step in range(2):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
