import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA():
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}
        self.backup = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                self.shadow[name] = new_average.clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.backup
                param.data = self.backup[name]
        self.backup = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 12)
        self.fc2 = nn.Linear(12, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x))).squeeze(-1)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return F.mse_loss(model(x), y).item()


def train():
    x = torch.randn(80, 4)
    y = torch.sin(x).sum(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    ema = EMA(model, 0.9)
    ema.register()
    for epoch in range(5):
        model.train()
        for i in range(0, 64, 16):
            loss = F.mse_loss(model(x[i:i + 16]), y[i:i + 16])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update()
        plain = evaluate(model, x[64:], y[64:])
        ema.apply_shadow()
        averaged = evaluate(model, x[64:], y[64:])
        ema.restore()
        print("epoch %d: %.5f plain, %.5f averaged" % (epoch, plain, averaged))


if __name__ == "__main__":
    train()
