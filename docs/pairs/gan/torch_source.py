import torch
from torch import nn
from torch.nn import functional as F

LATENT = 4


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, 16), nn.ReLU(), nn.Linear(16, 6), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def train(steps=20, batch=8):
    torch.manual_seed(0)
    generator, discriminator = Generator(), Discriminator()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real_labels, fake_labels = torch.ones(batch), torch.zeros(batch)
    for step in range(steps):
        real = torch.randn(batch, 6)
        fake = generator(torch.randn(batch, LATENT))
        optimizer_d.zero_grad()
        loss_d = F.binary_cross_entropy_with_logits(discriminator(real), real_labels)
        loss_d = loss_d + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), fake_labels)
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss_g = F.binary_cross_entropy_with_logits(discriminator(fake), real_labels)
        loss_g.backward()
        optimizer_g.step()
    return generator


if __name__ == "__main__":
    train()
