import torch
from torch import nn
from torch.nn import functional as F

STEPS = 50
BETAS = torch.linspace(1e-4, 0.02, STEPS)
KEPT = torch.cumprod(1 - BETAS, dim=0)


class Denoiser(nn.Module):
    def __init__(self, features=6, hidden=16):
        super().__init__()
        self.time = nn.Embedding(STEPS, hidden)
        self.layer1 = nn.Linear(features, hidden)
        self.layer2 = nn.Linear(hidden, features)

    def forward(self, x, t):
        return self.layer2(F.silu(self.layer1(x) + self.time(t)))


def train_step(model, optimizer, x):
    t = torch.randint(0, STEPS, (x.shape[0],))
    noise = torch.randn_like(x)
    kept = KEPT[t].unsqueeze(1)
    noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
    loss = F.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        train_step(model, optimizer, torch.randn(8, 6))


if __name__ == "__main__":
    main()
