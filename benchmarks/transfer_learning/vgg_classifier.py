"""A VGG-11 with batch normalization whose last layer is another."""

import torch
import torch.nn as nn
import torch.optim as optim
from torchvision.models import vgg11_bn

torch.manual_seed(0)
net = vgg11_bn(weights=None)
for p in net.features.parameters():
    p.requires_grad = False
net.classifier[6] = nn.Linear(4096, 5)
opt = optim.SGD(net.classifier.parameters(), lr=1e-3, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
x, y = torch.randn(2, 3, 32, 32), torch.tensor([1, 4])
net.train()
for _ in range(2):
    opt.zero_grad()
    out = net(x)
    loss = loss_fn(out, y)
    loss.backward()
    opt.step()
    print(loss.item())
