"""A GAN with spectral normalisation and hinge losses; the generator is updated once in two critic updates."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm


def weights_init(m):
    if isinstance(m, (nn.Linear,)):
        nn.init.normal_(m.weight, 0, 0.2)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, z_dim=4, out_dim=2, act='LeakyReLU'):
        super().__init__()
        self.z_dim = z_dim
        self.main = nn.Sequential(nn.Linear(z_dim, 16), getattr(nn, act)(0.1), nn.Linear(16, 16), getattr(nn, act)(0.1),
                                  nn.Linear(16, out_dim))
        self.apply(weights_init)

    def forward(self, z):
        return self.main(z)


class Critic(nn.Module):
    def __init__(self, in_dim=2):
        super().__init__()
        self.l1 = spectral_norm(nn.Linear(in_dim, 16))
        self.l2 = spectral_norm(nn.Linear(16, 16))
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        h = F.leaky_relu(self.l1(x), 0.1)
        h = F.leaky_relu(self.l2(h), 0.1)
        return self.out(h).squeeze(1)


torch.manual_seed(5)
G, D = Generator(), Critic()
opt_G = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_D = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.0, 0.9))
centers = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
n_critic = 2
step = 0
while step < 10:
    real = centers[torch.randint(0, 3, (12,))] + 0.05 * torch.randn(12, 2)
    z = torch.randn(12, G.z_dim)
    with torch.no_grad():
        fake = G(z)
    d_loss = F.relu(1.0 - D(real)).mean() + F.relu(1.0 + D(fake)).mean()
    opt_D.zero_grad()
    d_loss.backward()
    opt_D.step()
    if step % n_critic == 0:
        g_loss = -D(G(torch.randn(12, G.z_dim))).mean()
        opt_G.zero_grad()
        g_loss.backward()
        opt_G.step()
    if step % 3 == 0:
        print('[%d] D %.4f G %.4f' % (step, d_loss.item(), g_loss.item()))
    step += 1
with torch.no_grad():
    print(G(torch.zeros(1, 4)), D(centers))
