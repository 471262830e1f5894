"""Two networks trained for each other by one optimizer, in an object whose methods differentiate a loss each."""

import itertools

import torch
import torch.nn as nn


class Map(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 4))

    def forward(self, x):
        return x + self.body(x)


class TwoDomains:
    def __init__(self, lr=1e-2, weight=5.0):
        self.there, self.back = Map(), Map()
        self.judge_a, self.judge_b = nn.Linear(4, 1), nn.Linear(4, 1)
        self.matches = nn.MSELoss()
        self.cycle = nn.L1Loss()
        maps = itertools.chain(self.there.parameters(), self.back.parameters())
        judges = itertools.chain(self.judge_a.parameters(), self.judge_b.parameters())
        self.opt_maps = torch.optim.Adam(maps, lr=lr, betas=(0.5, 0.999))
        self.opt_judges = torch.optim.Adam(judges, lr=lr, betas=(0.5, 0.999))
        self.weight = weight

    def judge_loss(self, judge, real, fake):
        truth, made = judge(real), judge(fake.detach())
        loss = (self.matches(truth, torch.ones_like(truth)) + self.matches(made, torch.zeros_like(made))) * 0.5
        loss.backward()
        return loss

    def optimize(self, real_a, real_b):
        self.fake_b = self.there(real_a)
        self.fake_a = self.back(real_b)
        self.opt_maps.zero_grad()
        said_a, said_b = self.judge_a(self.fake_a), self.judge_b(self.fake_b)
        self.loss_fool = self.matches(said_a, torch.ones_like(said_a)) + self.matches(said_b, torch.ones_like(said_b))
        self.loss_cycle = self.cycle(self.back(self.fake_b), real_a) + self.cycle(self.there(self.fake_a), real_b)
        self.loss = self.loss_fool + self.weight * self.loss_cycle
        self.loss.backward()
        self.opt_maps.step()
        self.opt_judges.zero_grad()
        self.loss_a = self.judge_loss(self.judge_a, real_a, self.fake_a)
        self.loss_b = self.judge_loss(self.judge_b, real_b, self.fake_b)
        self.opt_judges.step()


torch.manual_seed(0)
pair = TwoDomains()
for step in range(6):
    pair.optimize(torch.randn(8, 4), torch.randn(8, 4) * 0.5 + 1)
    print(step, pair.loss.item(), pair.loss_cycle.item(), pair.loss_a.item(), pair.loss_b.item())
