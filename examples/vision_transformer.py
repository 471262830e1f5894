"""A small vision transformer, in PyTorch."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    image_size: int = 16
    patch_size: int = 4
    dim: int = 24
    heads: int = 3
    depth: int = 2
    mlp_ratio: int = 2
    num_classes: int = 10
    dropout: float = 0.1


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, dim = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * self.scale
        weights = self.dropout(scores.softmax(dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(batch, length, dim)
        return self.proj(out)


class Block(nn.Module):
    """Attention and a two-layer perceptron, each behind a normalisation and added to its input."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.dim, eps=1e-6)
        self.attention = Attention(config.dim, config.heads, config.dropout)
        self.norm2 = nn.LayerNorm(config.dim, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(config.dim, config.mlp_ratio * config.dim),
            nn.GELU(),
            nn.Linear(config.mlp_ratio * config.dim, config.dim),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Patches, a class token, learned positions, transformer blocks, and a linear classifier."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        config = config or Config()
        patches = (config.image_size // config.patch_size) ** 2
        self.patch_embed = nn.Conv2d(3, config.dim, config.patch_size, stride=config.patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, config.dim))
        self.positions = nn.Parameter(torch.randn(1, patches + 1, config.dim) * 0.02)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.dim, eps=1e-6)
        self.head = nn.Linear(config.dim, config.num_classes)
        nn.init.trunc_normal_(self.class_token, std=0.02)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class scores of shape (batch, num_classes) for images of shape (batch, 3, image_size, image_size)."""
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        token = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat([token, x], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


if __name__ == "__main__":
    torch.manual_seed(0)
    model = VisionTransformer().eval()
    print(model(torch.randn(2, 3, 16, 16)).shape)
