import torch
from torch import nn
import torch.nn.functional as F


class LightningModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.logged = []

    def log(self, name, value):
        self.logged.append((name, float(value)))


class LitRegressor(LightningModule):
    def __init__(self, d, lr):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 1))
        self.lr = lr

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, batches):
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            for i, batch in enumerate(batches):
                loss = module.training_step(batch, i)
                self.optimizer_step(optimizer, loss)
                print(epoch, i, f"{loss.item():.4f}")

    def optimizer_step(self, optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(1)
    data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
    Trainer(2).fit(LitRegressor(3, 1e-2), data)
