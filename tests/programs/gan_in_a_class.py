import torch
import torch.nn as nn


class GAN:
    def __init__(self, dim=8):
        self.dim = dim
        self.G = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 2))
        self.D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()

    def _sample(self, n):
        return self.G(torch.randn(n, self.dim))

    def d_loss(self, real):
        fake = self._sample(real.size(0)).detach()
        return self.bce(self.D(real), torch.ones(real.size(0), 1)) + self.bce(self.D(fake), torch.zeros(real.size(0), 1))

    def g_loss(self, n):
        return self.bce(self.D(self._sample(n)), torch.ones(n, 1))

    def step(self, real):
        self.opt_d.zero_grad()
        d = self.d_loss(real)
        d.backward()
        self.opt_d.step()

        self.opt_g.zero_grad()
        g = self.g_loss(real.size(0))
        g.backward()
        self.opt_g.step()
        return d.item(), g.item()


torch.manual_seed(3)
gan = GAN()
for it in range(6):
    real = torch.randn(16, 2) * 0.5 + 1
    d, g = gan.step(real)
    print(it, round(d, 4), round(g, 4))
