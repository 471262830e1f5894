import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr=0.05, l2=1e-3):
        self.model = model
        self.l2 = l2
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.history = []

    def compute_loss(self, batch):
        x, y = batch
        pred = self.model(x)
        return self.criterion(pred, y) + self.l2 * pred.abs().mean()

    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.compute_loss(batch)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            self.model.train()
            losses = [self.train_step(b) for b in batches]
            self.history.append(sum(losses) / len(losses))
            print(f'epoch {epoch}: {self.history[-1]:.4f} val {self.validate(batches):.4f}')

    @torch.no_grad()
    def validate(self, batches):
        self.model.eval()
        return sum(self.compute_loss(b).item() for b in batches) / len(batches)


torch.manual_seed(1)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(32, 3)
y = x.sum(1, keepdim=True).sin()
data = list(zip(x.split(8), y.split(8)))
Trainer(net).fit(data, 3)
