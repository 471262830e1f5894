"""Train a small network to tell two spirals apart, as such scripts are written."""

import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class SpiralNet(nn.Module):
    """Two hidden layers with dropout between them."""

    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def spirals(number: int) -> TensorDataset:
    """Points on two arms, with noise, and which arm they are on."""
    angle = 3 * math.pi * torch.rand(number).sqrt()
    arm = torch.randint(0, 2, (number,))
    turned = angle + math.pi * arm
    points = torch.stack([angle * turned.cos(), angle * turned.sin()], dim=1) / 9
    return TensorDataset(points + 0.02 * torch.randn(number, 2), arm)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()

    torch.manual_seed(0)
    train_set, test_set = random_split(spirals(400), [320, 80])
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=80)
    model = SpiralNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for points, arms in loader:
            optimizer.zero_grad()
            loss = criterion(model(points), arms)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()

        model.eval()
        correct = 0
        with torch.no_grad():
            for points, arms in test_loader:
                correct += (model(points).argmax(dim=1) == arms).sum().item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}, {correct} of {len(test_set)} right")


if __name__ == "__main__":
    main()
