"""A continuous bandit: a Gaussian policy trained by the score function, batch by batch."""
import torch
from torch import nn
from torch.distributions import Normal


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim: int, act_dim: int):
        super().__init__()
        self.mu = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, act_dim))
        self.log_std = nn.Parameter(-0.5 * torch.ones(act_dim))

    def distribution(self, obs: torch.Tensor) -> Normal:
        return Normal(self.mu(obs), torch.exp(self.log_std))

    def forward(self, obs):
        return self.distribution(obs)


def reward_fn(obs, act):
    return -((act - torch.sin(obs[:, :1])) ** 2).sum(-1)


torch.manual_seed(3)
policy = GaussianPolicy(2, 1)
opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
baseline = 0.0
for it in range(12):
    obs = torch.randn(64, 2)
    with torch.no_grad():
        act = policy(obs).sample()
    rew = reward_fn(obs, act)
    adv = rew - baseline
    baseline = 0.9 * baseline + 0.1 * rew.mean().item()
    dist = policy(obs)
    logp = dist.log_prob(act).sum(-1)
    loss = -(logp * adv).mean() - 1e-3 * dist.entropy().sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 3 == 0:
        print(f"{it:3d} reward {rew.mean().item():.4f} std {policy.log_std.exp().item():.4f} loss {loss.item():.4f}")
