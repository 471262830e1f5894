"""Two images through one ResNet with one channel."""

import torch
from torch import nn
from torchvision.models import resnet18


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.resnet = resnet18(weights=None)
        self.resnet.conv1 = nn.Conv2d(1, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.resnet.fc = nn.Identity()
        self.fc = nn.Sequential(nn.Linear(1024, 32), nn.ReLU(inplace=True), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, a, b):
        both = torch.cat((self.resnet(a), self.resnet(b)), 1)
        return self.fc(both)


torch.manual_seed(0)
net = Siamese()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
criterion = nn.BCELoss()
a, b = torch.randn(6, 1, 64, 64), torch.randn(6, 1, 64, 64)
target = torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
for step in range(2):
    optimizer.zero_grad()
    loss = criterion(net(a, b).squeeze(), target)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
