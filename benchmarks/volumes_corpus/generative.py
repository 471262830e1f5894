from __future__ import annotations

import torch
import torch.nn as nn


class Autoencoder3D(nn.Module):
    """Strided convolutions down, transposed ones up, as published for volumes of 32 x 32 x 32."""

    def __init__(self, latent=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv3d(1, 16, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv3d(16, 32, 4, 2, 1),
            nn.BatchNorm3d(32),
            nn.LeakyReLU(0.2),
            nn.Conv3d(32, 64, 4, 2, 1),
            nn.Flatten(),
            nn.Linear(64 * 4 * 4 * 4, latent),
        )
        self.expand = nn.Linear(latent, 64 * 4 * 4 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose3d(64, 32, 4, 2, 1),
            nn.BatchNorm3d(32),
            nn.ReLU(),
            nn.ConvTranspose3d(32, 16, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose3d(16, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        z = self.encoder(x)
        y = self.expand(z).view(-1, 64, 4, 4, 4)
        return self.decoder(y)


class VAE3D(nn.Module):
    def __init__(self, channels: int = 12, latent: int = 8):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv3d(1, channels, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv3d(channels, 2 * channels, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.mu = nn.Conv3d(2 * channels, latent, 1)
        self.logvar = nn.Conv3d(2 * channels, latent, 1)
        self.dec = nn.Sequential(
            nn.ConvTranspose3d(latent, channels, 3, stride=2, padding=1, output_padding=1), nn.ReLU(),
            nn.ConvTranspose3d(channels, 1, 3, stride=2, padding=1, output_padding=1),
        )

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(self.reparameterize(mu, logvar)), mu, logvar


class Generator3DGAN(nn.Module):
    """Wu et al. 2016: a vector becomes a volume of 32 x 32 x 32."""

    def __init__(self, z_dim=20, width=8):
        super(Generator3DGAN, self).__init__()

        def block(i, o, k=4, s=2, p=1):
            return nn.Sequential(nn.ConvTranspose3d(i, o, k, s, p, bias=False), nn.BatchNorm3d(o), nn.ReLU(True))

        self.z_dim = z_dim
        self.l1 = block(z_dim, 8 * width, 4, 1, 0)
        self.l2 = block(8 * width, 4 * width)
        self.l3 = block(4 * width, 2 * width)
        self.l4 = nn.Sequential(nn.ConvTranspose3d(2 * width, 1, 4, 2, 1), nn.Tanh())

    # t2j: z=f32[3, 20]
    def forward(self, z):
        out = z.view(-1, self.z_dim, 1, 1, 1)
        return self.l4(self.l3(self.l2(self.l1(out))))


class Discriminator3DGAN(nn.Module):
    def __init__(self, width=8, leak=0.2):
        super().__init__()
        layers = []
        channels = 1
        for multiple in (1, 2, 4):
            layers += [nn.Conv3d(channels, multiple * width, 4, 2, 1), nn.LeakyReLU(leak, inplace=True)]
            channels = multiple * width
        self.main = nn.Sequential(*layers)
        self.final = nn.Conv3d(channels, 1, 4)

    # t2j: x=f32[3, 1, 32, 32, 32]
    def forward(self, x):
        return torch.sigmoid(self.final(self.main(x))).squeeze()


class DenoisingBlock3D(nn.Module):
    """A residual block of a diffusion model over volumes, with an embedding of time."""

    def __init__(self, channels=16, time_dim=12, groups=4):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, channels)
        self.conv1 = nn.Conv3d(channels, channels, 3, padding=1)
        self.time = nn.Linear(time_dim, channels)
        self.norm2 = nn.GroupNorm(groups, channels)
        self.conv2 = nn.Conv3d(channels, channels, 3, padding=1)
        self.act = nn.SiLU()

    # t2j: x=f32[3, 16, 5, 6, 7], t_emb=f32[3, 12]
    def forward(self, x, t_emb):
        h = self.conv1(self.act(self.norm1(x)))
        h = h + self.time(self.act(t_emb))[:, :, None, None, None]
        h = self.conv2(self.act(self.norm2(h)))
        return x + h


class ResidualStack3D(nn.Module):
    """The encoder of a VQ-VAE over video, before its codebook."""

    def __init__(self, hidden=24, layers=3):
        super().__init__()
        self.down = nn.Conv3d(3, hidden, kernel_size=4, stride=(2, 4, 4), padding=1)
        self.res = nn.ModuleList([
            nn.Sequential(nn.BatchNorm3d(hidden), nn.ReLU(), nn.Conv3d(hidden, hidden // 2, 3, padding=1, bias=False),
                          nn.BatchNorm3d(hidden // 2), nn.ReLU(), nn.Conv3d(hidden // 2, hidden, 1, bias=False))
            for _ in range(layers)
        ])

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        h = self.down(video)
        for block in self.res:
            h = h + block(h)
        return h
