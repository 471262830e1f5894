"""Small PyTorch modules and the Flax NNX modules that an expert would write for them, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import torch
from flax import nnx
from torch import nn


class Buffer(nnx.Variable[Any]):
    """As the helper of the same name: a registered buffer."""


class TorchMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, 5)
        self.fc2 = nn.Linear(5, 2, bias=False)
        self.scale = nn.Parameter(torch.ones(2, 3))
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("steps", torch.tensor(7))
        self.register_buffer("cache", torch.ones(4), persistent=False)


class MLP(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.fc1 = nnx.Linear(3, 5, rngs=rngs)
        self.fc2 = nnx.Linear(5, 2, use_bias=False, rngs=rngs)
        self.scale = nnx.Param(jnp.zeros((2, 3)))
        self.mask = Buffer(jnp.zeros(2, bool))
        self.steps = Buffer(jnp.zeros((), int))
        self.cache = Buffer(jnp.zeros(4), persistent=False)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.table = jnp.arange(3.0)


class TorchConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 6, (3, 2), groups=2)
        self.bn = nn.BatchNorm2d(6)
        self.plain = nn.BatchNorm1d(3, affine=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x)).sum((2, 3))


class ConvNet(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(4, 6, (3, 2), feature_group_count=2, padding="VALID", rngs=rngs)
        self.bn = nnx.BatchNorm(6, epsilon=1e-5, use_running_average=True, use_fast_variance=False, rngs=rngs)
        self.plain = nnx.BatchNorm(3, use_bias=False, use_scale=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.bn(self.conv(jnp.moveaxis(x, 1, -1))).sum((1, 2))


class TorchTied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Module()
        self.head.weight = self.embedding.weight
        self.proj = nn.Linear(4, 4)
        self.again = self.proj

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.proj(self.embedding(x))) @ self.head.weight.T


class Head(nnx.Module):
    def __init__(self, weight: nnx.Param[Any]) -> None:
        self.weight = weight


class Tied(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.embedding = nnx.Embed(7, 4, rngs=rngs)
        self.head = Head(self.embedding.embedding)
        self.proj = nnx.Linear(4, 4, rngs=rngs)
        self.again = self.proj
        # As a plain list in PyTorch, this holds nothing that is saved, though it is Flax's first path to `proj`.
        self.aliases = nnx.data([self.proj])

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.again(self.proj(self.embedding(x))) @ self.head.weight.T


class TorchContainers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
        self.blocks = nn.ModuleList([nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "layers": nn.Linear(2, 3)})
        self.params = nn.ParameterList([torch.randn(2), torch.randn(3)])
        self.layers = nn.ModuleList([nn.Linear(1, 2)])


class Containers(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        inner = nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs))
        self.body = nnx.Sequential(nnx.Linear(2, 3, rngs=rngs), nnx.relu, inner)
        self.blocks = nnx.List([nnx.Linear(2, 3, rngs=rngs), nnx.relu, nnx.Linear(3, 2, rngs=rngs)])
        self.heads = nnx.Dict({"a": nnx.Linear(2, 1, rngs=rngs), "layers": nnx.Linear(2, 3, rngs=rngs)})
        self.params = nnx.List([nnx.Param(jnp.zeros(2)), nnx.Param(jnp.zeros(3))])
        self.layers = nnx.List([nnx.Linear(1, 2, rngs=rngs)])


class TorchNorms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LayerNorm(6)
        self.group = nn.GroupNorm(2, 6)
        self.rms = nn.RMSNorm(6)
        self.instance = nn.InstanceNorm2d(6, affine=True)
        self.prelu = nn.PReLU()


class Norms(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.layer = nnx.LayerNorm(6, rngs=rngs)
        self.group = nnx.GroupNorm(6, num_groups=2, rngs=rngs)
        self.rms = nnx.RMSNorm(6, rngs=rngs)
        self.instance = nnx.InstanceNorm(6, rngs=rngs)
        self.prelu = nnx.PReLU()


class TorchUpsample(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flipped = nn.ConvTranspose2d(2, 3, (2, 3), stride=2)
        self.up = nn.ConvTranspose2d(3, 4, (3, 2), stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.flipped(x)).sum((2, 3))


class Upsample(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.flipped = nnx.ConvTranspose(2, 3, (2, 3), 2, padding="VALID", transpose_kernel=True, rngs=rngs)
        self.up = nnx.ConvTranspose(3, 4, (3, 2), 2, padding="VALID", rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.up(self.flipped(jnp.moveaxis(x, 1, -1))).sum((1, 2))


class TorchAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(6, 2, batch_first=True)
        self.plain = nn.MultiheadAttention(6, 3, bias=False, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mha(x, x, x, need_weights=False)[0]
        return self.plain(x, x, x, need_weights=False)[0]


def float64_attention(query: jax.Array, key: jax.Array, value: jax.Array, **options: Any) -> jax.Array:
    """Attention in the dtype of its inputs; Flax's default computes the softmax in float32."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)


class Attention(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        options = {"decode": False, "attention_fn": float64_attention}
        self.mha = nnx.MultiHeadAttention(2, 6, **options, rngs=rngs)
        self.plain = nnx.MultiHeadAttention(3, 6, use_bias=False, **options, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.plain(self.mha(x))


class TorchCrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(6, 2, kdim=4, vdim=4, batch_first=True)
        self.out = nn.Linear(6, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.mha(x, x[..., :4], x[..., :4], need_weights=False)[0])


class CrossAttention(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.mha = nnx.MultiHeadAttention(
            2, 6, in_kv_features=4, decode=False, attention_fn=float64_attention, rngs=rngs
        )
        self.out = nnx.LinearGeneral(6, (2, 5), rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(self.mha(x, x[..., :4])).reshape(*x.shape[:-1], 10)


@dataclass(frozen=True)
class Pair:
    """A PyTorch module, its NNX counterpart, and an input shape where both can run forward (None: names only)."""

    torch: Callable[[], nn.Module]
    nnx: Callable[..., nnx.Module]
    shape: tuple[int, ...] | None = None
    integer: bool = False

    def empty(self) -> nnx.Module:
        """The NNX module without values: quicker to make, and all of it must be loaded."""
        return nnx.eval_shape(lambda: self.nnx(rngs=nnx.Rngs(0)))


PAIRS = {
    "parameters, buffers, random state": Pair(TorchMLP, MLP),
    "convolution and batch norm": Pair(TorchConvNet, ConvNet, (2, 4, 5, 6)),
    "tied embedding": Pair(TorchTied, Tied, (3, 2), integer=True),
    "containers": Pair(TorchContainers, Containers),
    "norms": Pair(TorchNorms, Norms),
    "transposed convolution": Pair(TorchUpsample, Upsample, (1, 2, 3, 4)),
    "attention": Pair(TorchAttention, Attention, (2, 3, 6)),
    "cross attention": Pair(TorchCrossAttention, CrossAttention, (2, 3, 6)),
}


def randomized(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """The module in eval mode, with random parameters and statistics: fresh ones and zeros hide mistakes."""
    module = make().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.rand(value.shape, generator=generator) + 0.1)
    return module
