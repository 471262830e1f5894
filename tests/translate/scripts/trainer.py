from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainerConfig:
    max_epochs: int = 2
    grad_clip: float = 1.0
    lr: float = 0.05


class MLP(nn.Module):
    def __init__(self, dim: int, hidden: int, classes: int):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.net(x)


class Trainer:
    """Trains a model and keeps its history."""

    def __init__(self, model, train_loader, val_loader, config):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(self.device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=config.max_epochs)
        self.losses = []
        self.accuracies = []

    def train_epoch(self):
        self.model.train()
        total_loss = 0.0
        for inputs, targets in self.train_loader:
            inputs = inputs.to(self.device)
            targets = targets.to(self.device)
            self.optimizer.zero_grad()
            outputs = self.model(inputs)
            loss = self.criterion(outputs, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
            self.optimizer.step()
            total_loss += loss.item()
        return total_loss / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        correct = total = 0
        for inputs, targets in self.val_loader:
            inputs, targets = inputs.to(self.device), targets.to(self.device)
            outputs = self.model(inputs)
            _, predicted = torch.max(outputs, 1)
            total += targets.size(0)
            correct += (predicted == targets).sum().item()
        return correct / total

    def fit(self):
        for epoch in range(self.config.max_epochs):
            self.losses.append(self.train_epoch())
            self.accuracies.append(self.evaluate())
            self.scheduler.step()


features = torch.linspace(-3, 3, 14 * 5).sin().reshape(14, 5)
classes = torch.arange(14) % 3
train_loader = DataLoader(TensorDataset(features[:9], classes[:9]), batch_size=3)
val_loader = DataLoader(TensorDataset(features[9:], classes[9:]), batch_size=2)
model = MLP(5, 7, 3)
# train
trainer = Trainer(model, train_loader, val_loader, TrainerConfig())
trainer.fit()
