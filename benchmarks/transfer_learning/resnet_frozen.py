"""Trains the head of a frozen ResNet-50 and writes what it learned."""

import torch
import torch.nn as nn
import torchvision

torch.manual_seed(1)
model = torchvision.models.resnet50(weights=None)
for param in model.parameters():
    param.requires_grad = False
num_features = model.fc.in_features
model.fc = nn.Sequential(nn.Linear(num_features, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.fc.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()


def train(images, labels):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device)
    x, y = torch.randn(4, 3, 32, 32).to(device), torch.tensor([0, 1, 2, 1]).to(device)
    for step in range(3):
        print(step, train(x, y))
    torch.save(model.state_dict(), "model.pth")
