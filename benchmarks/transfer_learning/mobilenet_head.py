"""MobileNetV2 for three classes, trained by AdamW with a schedule."""

import torch
from torch import nn
from torchvision.models import mobilenet_v2

torch.manual_seed(0)
model = mobilenet_v2(weights=None)
model.classifier[1] = nn.Linear(model.last_channel, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
x, y = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 0])
model.train()
for epoch in range(2):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
