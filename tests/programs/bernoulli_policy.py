import torch
import torch.nn as nn
from torch.distributions import Bernoulli


class Gate(nn.Module):
    """Chooses which features to look at, and is paid for being right with few."""

    def __init__(self, n_features):
        super().__init__()
        self.logits = nn.Sequential(nn.Linear(n_features, 16), nn.ReLU(), nn.Linear(16, n_features))

    def forward(self, x):
        return Bernoulli(logits=self.logits(x))


class Judge(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.net = nn.Linear(n_features, 1)

    def forward(self, x, mask):
        return self.net(x * mask).squeeze(-1)


def main(steps=10, cost=0.05):
    x = torch.randn(64, 6)
    y = 2 * x[:, 0] - x[:, 3]
    gate, judge = Gate(6), Judge(6)
    gate_opt = torch.optim.Adam(gate.parameters(), lr=1e-2)
    judge_opt = torch.optim.Adam(judge.parameters(), lr=5e-2)
    for step in range(steps):
        with torch.no_grad():
            mask = gate(x).sample()
        error = (judge(x, mask) - y) ** 2
        judge_loss = error.mean()
        judge_opt.zero_grad()
        judge_loss.backward()
        judge_opt.step()

        reward = -(error.detach() + cost * mask.sum(1))
        advantage = reward - reward.mean()
        dist = gate(x)
        gate_loss = -(dist.log_prob(mask).sum(1) * advantage).mean() - 0.01 * dist.entropy().mean()
        gate_opt.zero_grad()
        gate_loss.backward()
        gate_opt.step()
        if step % 3 == 0:
            print(f'{step}: {judge_loss.item():.4f} {gate_loss.item():.4f} {mask.mean().item():.3f}')


if __name__ == '__main__':
    main()
