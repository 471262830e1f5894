import torch
from torch import nn, optim
from torch.optim import lr_scheduler


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.pool(torch.relu(self.conv2(x))).flatten(1)


class FineTuned(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.base = Backbone()
        self.head = nn.Linear(8, n_classes)

    def forward(self, x):
        return self.head(self.base(x))


model = FineTuned(3)
for p in model.base.conv1.parameters():
    p.requires_grad = False
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(
    [
        {"params": model.base.conv2.parameters(), "lr": 1e-3},
        {"params": model.base.bn1.parameters()},
        {"params": model.head.parameters(), "lr": 1e-1, "weight_decay": 1e-4},
    ],
    lr=1e-2,
    momentum=0.9,
)
scheduler = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
images, labels = torch.randn(24, 3, 8, 8), torch.randint(0, 3, (24,))
for epoch in range(4):
    running = 0.0
    for i in range(0, 24, 8):
        xb, yb = images[i:i + 8], labels[i:i + 8]
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * xb.size(0)
    scheduler.step()
    print("Epoch {}/{} Loss: {:.4f} LR: {}".format(epoch, 3, running / 24, scheduler.get_last_lr()))
