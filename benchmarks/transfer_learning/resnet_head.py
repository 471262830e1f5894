"""Fine-tunes all of a ResNet-18 with a head for two classes."""

import torch
from torch import nn, optim
from torchvision import models

torch.manual_seed(0)
model = models.resnet18(weights=None)
model.fc = nn.Linear(model.fc.in_features, 2)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 2, (8,))

model.train()
for epoch in range(2):
    running = 0.0
    for start in range(0, 8, 4):
        x, y = images[start : start + 4], labels[start : start + 4]
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * x.size(0)
    print(f"epoch {epoch}: {running / len(images):.4f}")

model.eval()
with torch.no_grad():
    predicted = model(images).argmax(dim=1)
print("accuracy", (predicted == labels).float().mean().item())
