"""The same training program in three styles, with the places where somebody who migrates looks first."""

MODEL = """import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1)
        self.fc = nn.Linear(width, 4)
        self.apply(self.start)

    def start(self, m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = F.interpolate(x, scale_factor=2, mode="bilinear")
        mask = x > 1
        x[mask] = 0
        x += 1
        x.add_(x)
        return self.fc(x.mean(dim=(2, 3)))


@torch.jit.script
def fused(x: torch.Tensor):
    return x[:, None] * 2


"""

FUNCTION = (
    MODEL
    + """@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct


def train(model, loader, args):
    torch.manual_seed(args.seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        with torch.no_grad():
            print(loss.item())
"""
)

TRAINER = (
    MODEL
    + """class Trainer:
    def __init__(self, model, args):
        torch.manual_seed(args.seed)
        self.model = model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.001)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            self.scheduler.step()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        total = 0
        for x, y in loader:
            with torch.no_grad():
                total += (self.model(x).argmax(1) == y).sum().item()
        return total


trainer = Trainer(Net(), argparse.Namespace(seed=0))
"""
)

SCRIPT = (
    MODEL
    + """parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for epoch in range(2):
    model.train()
    for _ in range(3):
        x = torch.randn(2, 3, 8, 8)
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    scheduler.step()
model.eval()
with torch.no_grad():
    print(model(torch.randn(2, 3, 8, 8)).mean())


@torch.no_grad()
def norm(x: torch.Tensor):
    return x.norm()
"""
)

STYLES = {"function": FUNCTION, "trainer": TRAINER, "script": SCRIPT}
