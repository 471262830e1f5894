"""A network of one's own on the features of VGG-16."""

import torch
from torch import nn
from torchvision import models


class Embedding(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.backbone = models.vgg16(weights=None).features
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, size)

    def forward(self, x):
        x = self.pool(self.backbone(x)).flatten(1)
        return nn.functional.normalize(self.fc(x), dim=1)


torch.manual_seed(0)
net = Embedding(8)
for p in net.backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(net.fc.parameters(), lr=1e-3)
anchor, positive, negative = (torch.randn(2, 3, 32, 32) for _ in range(3))
criterion = nn.TripletMarginLoss(margin=0.5)
for step in range(2):
    optimizer.zero_grad()
    loss = criterion(net(anchor), net(positive), net(negative))
    loss.backward()
    optimizer.step()
    print(step, loss.item())
