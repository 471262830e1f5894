import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class SmallCNN(nn.Module):
    def __init__(self, num_classes: int = 3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Dropout2d(0.1)
        )
        self.fc = nn.Linear(8 * 4 * 4, num_classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.features(x), 1))


def train_one_epoch(model, loader, criterion, optimizer, writer, epoch):
    model.train()
    for step, (images, targets) in enumerate(loader):
        logits = model(images)
        loss = criterion(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.add_scalar("train/loss", loss.item(), epoch * len(loader) + step)
    return loss.item()


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    total, correct, loss_sum = 0, 0, 0.0
    for images, targets in loader:
        logits = model(images)
        loss_sum += criterion(logits, targets).item() * targets.size(0)
        correct += logits.argmax(1).eq(targets).sum().item()
        total += targets.size(0)
    return loss_sum / total, 100.0 * correct / total


if __name__ == "__main__":
    data = torch.rand(60, 1, 8, 8)
    target = (data.mean((1, 2, 3)) * 30).long() % 3
    train_loader = DataLoader(TensorDataset(data[:45], target[:45]), batch_size=15, shuffle=True)
    val_loader = DataLoader(TensorDataset(data[45:], target[45:]), batch_size=15)
    net = SmallCNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    writer = SummaryWriter(os.path.join("runs", "cnn"))
    for epoch in range(3):
        train_loss = train_one_epoch(net, train_loader, criterion, optimizer, writer, epoch)
        val_loss, val_acc = validate(net, val_loader, criterion)
        writer.add_scalars("loss", {"train": train_loss, "val": val_loss}, epoch)
        writer.add_histogram("fc.weight", net.fc.weight, epoch)
        print(f"Epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.1f}%")
    writer.close()
