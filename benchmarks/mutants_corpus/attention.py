"""Attention and transformer blocks."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


# t2j: args=(6, 2), x=f32[3, 5, 6]
class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        b, t, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(b, t, self.heads, -1).transpose(1, 2)
        k = k.view(b, t, self.heads, -1).transpose(1, 2)
        v = v.view(b, t, self.heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=-1)
        out = (weights @ v).transpose(1, 2).reshape(b, t, d)
        return self.proj(out)


# t2j: args=(6, 7), x=f32[3, 5, 6]
class CausalAttention(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)))
        self.drop = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor):
        t = x.shape[1]
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        weights = self.drop(F.softmax(scores, dim=-1))
        return torch.bmm(weights, v)


# t2j: args=(6, 9), x=f32[3, 5, 6]
class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor):
        y = self.norm(x)
        y = F.gelu(self.fc1(y))
        y = self.drop(y)
        return x + self.fc2(y)


# t2j: args=(6, 8), x=f32[3, 5, 6]
class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x: torch.Tensor):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


# t2j: args=(6,), x=f32[3, 5, 6]
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor):
        norm = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(norm + self.eps)
        return x * self.weight


# t2j: x=f32[2, 3, 5, 6]
def rotate_half(x: torch.Tensor):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


# t2j: q=f32[2, 3, 5, 6]
def apply_rope(q: torch.Tensor):
    t, d = q.shape[-2], q.shape[-1]
    inv_freq = 1.0 / (100.0 ** (torch.arange(0, d, 2) / d))
    angles = torch.outer(torch.arange(t).to(q.dtype), inv_freq.to(q.dtype))
    angles = torch.cat((angles, angles), dim=-1)
    return q * angles.cos() + rotate_half(q) * angles.sin()


# t2j: args=(8, 12), x=f32[3, 7, 8]
class PositionalEncoding(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(length, dim)
        table[:, 0::2] = torch.sin(position * div)
        table[:, 1::2] = torch.cos(position * div)
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor):
        return x + self.table[: x.size(1)]


# t2j: q=f32[2, 3, 4, 6], k=f32[2, 3, 5, 6], v=f32[2, 3, 5, 6], mask=bool[4, 5]
def masked_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, -1e4)
    weights = F.softmax(scores, dim=-1)
    weights = weights * mask
    return torch.matmul(weights, v)


# t2j: x=f32[2, 4, 6], lengths=1 <= i64[2] < 5
def masked_mean(x: torch.Tensor, lengths: torch.Tensor):
    mask = torch.arange(x.size(1))[None, :] < lengths[:, None]
    total = (x * mask.unsqueeze(-1)).sum(dim=1)
    return total / lengths.unsqueeze(-1)


# t2j: args=(6, 4), x=f32[2, 7, 6], memory=f32[2, 5, 6]
class CrossAttention(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, 2 * inner, bias=False)
        self.temperature = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: torch.Tensor, memory: torch.Tensor):
        q = self.to_q(x)
        k, v = self.to_kv(memory).chunk(2, dim=-1)
        q = F.normalize(q, dim=-1)
        k = F.normalize(k, dim=-1)
        weights = (q @ k.transpose(1, 2) * self.temperature.exp()).softmax(-1)
        return weights @ v


# t2j: args=(4, 3), x=f32[2, 4, 6, 9]
class PatchEmbed(nn.Module):
    def __init__(self, channels, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, 8, patch, stride=patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))
        self.pos = nn.Parameter(torch.zeros(1, 7, 8))

    def forward(self, x: torch.Tensor):
        x = self.proj(x).flatten(2).transpose(1, 2)
        cls = self.cls.expand(x.shape[0], -1, -1)
        x = torch.cat([cls, x], dim=1)
        return x + self.pos


# t2j: args=(6,), x=f32[2, 5, 6]
class LayerScaleBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gamma = nn.Parameter(1e-1 * torch.ones(dim))
        self.mlp = nn.Sequential(nn.Linear(dim, 9), nn.GELU(), nn.Linear(9, dim))

    def forward(self, x: torch.Tensor):
        return x + self.gamma * self.mlp(self.norm(x))
