"""Tensor functions: indexing, masks, scatter, shapes, statistics, linear algebra, training updates."""

import torch
import torch.nn as nn
import torch.nn.functional as F


# t2j: x=f32[5, 3], edges=i64[2, 8] < 5
def aggregate(x: torch.Tensor, edges: torch.Tensor):
    source, target = edges
    out = torch.zeros_like(x)
    out.index_add_(0, target, x[source])
    degree = torch.zeros(x.size(0)).to(x.dtype)
    degree.index_add_(0, target, torch.ones(target.size(0)).to(x.dtype))
    return out / degree.clamp(min=1).unsqueeze(1)


# t2j: args=(3, 4), x=f32[5, 3], adj=bool[5, 5]
class GraphAttention(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.w = nn.Linear(inputs, outputs, bias=False)
        self.a = nn.Parameter(torch.randn(2 * outputs))

    def forward(self, x: torch.Tensor, adj: torch.Tensor):
        h = self.w(x)
        n, d = h.shape
        left = h @ self.a[:d]
        right = h @ self.a[d:]
        e = F.leaky_relu(left[:, None] + right[None, :], 0.2)
        e = torch.where(adj, e, torch.full_like(e, -9.0))
        return F.elu(F.softmax(e, dim=1) @ h)


# t2j: args=(3, 4), x=f32[5, 3], adj=0 <= f32[5, 5] < 1
class GCNLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor, adj: torch.Tensor):
        adj = adj + torch.eye(adj.size(0), dtype=adj.dtype)
        inv = adj.sum(dim=1).pow(-0.5)
        norm = inv[:, None] * adj * inv[None, :]
        return F.relu(self.linear(norm @ x))


# t2j: x=f32[6, 4]
def whiten(x: torch.Tensor):
    x = x - x.mean(dim=0, keepdim=True)
    cov = x.t() @ x / (x.size(0) - 1)
    chol = torch.linalg.cholesky(cov + 0.1 * torch.eye(4, dtype=x.dtype))
    return torch.linalg.solve(chol, x.t()).t()


# t2j: x=f32[5, 7]
def standardize(x: torch.Tensor):
    mean = x.mean(dim=1, keepdim=True)
    std = x.std(dim=1, keepdim=True)
    return (x - mean) / (std + 1e-2)


# t2j: x=f32[4, 6]
def outliers(x: torch.Tensor):
    median = x.median(dim=1, keepdim=True).values
    mad = (x - median).abs().mean(dim=1, keepdim=True)
    mask = (x - median).abs() > 1.2 * mad
    return torch.where(mask, median.expand_as(x), x), mask.sum()


# t2j: x=f32[3, 8]
def windows(x: torch.Tensor):
    parts = x.unfold(1, 4, 2)
    centred = parts - parts.mean(dim=-1, keepdim=True)
    return centred.abs().amax(dim=1)


# t2j: x=f32[4, 5], i=i64[4] < 5
def one_hot_gate(x: torch.Tensor, i: torch.Tensor):
    gate = F.one_hot(i, num_classes=5).to(x.dtype)
    chosen = (x * gate).sum(dim=1, keepdim=True)
    return x - gate * chosen * 0.5


# t2j: x=f32[6, 4]
def pairwise(x: torch.Tensor):
    diff = x.unsqueeze(0) - x.unsqueeze(1)
    d2 = diff.pow(2).sum(dim=-1)
    kernel = torch.exp(-0.3 * d2)
    return kernel - torch.diag(torch.diagonal(kernel))


# t2j: w=f32[5], g=f32[5], m=f32[5], v=0.1 <= f32[5] < 1
def adam_step(w: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor):
    g = g + 0.1 * w
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    mhat = m / (1 - 0.9**3)
    vhat = v / (1 - 0.99**3)
    w = w - 0.05 * mhat / (vhat.sqrt() + 1e-3)
    return w, m, v


# t2j: a=f32[6], b=f32[6]
def ema_update(a: torch.Tensor, b: torch.Tensor):
    with torch.no_grad():
        scale = b.abs().max()
    return 0.95 * a + 0.05 * b / scale


# t2j: grads=f32[4, 6]
def clip_rows(grads: torch.Tensor):
    norm = grads.norm(dim=1, keepdim=True)
    coef = (1.5 / (norm + 1e-3)).clamp(max=1.0)
    return grads * coef


# t2j: x=f32[2, 6, 4]
def split_heads(x: torch.Tensor):
    b, t, d = x.shape
    x = x.reshape(b, t, 2, d // 2)
    x = x.permute(0, 2, 1, 3)
    first, second = x[..., :1], x[..., 1:]
    return torch.cat([second, first], dim=-1)


# t2j: logits=f32[4, 7]
def nucleus(logits: torch.Tensor):
    probs = F.softmax(logits, dim=-1)
    sorted_probs, index = probs.sort(dim=-1, descending=True)
    cumulative = sorted_probs.cumsum(dim=-1)
    remove = cumulative - sorted_probs > 0.7
    kept = sorted_probs.masked_fill(remove, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True), index


# t2j: x=f32[5, 6]
def causal_decay(x: torch.Tensor):
    t = x.size(0)
    i = torch.arange(t)
    gap = (i[:, None] - i[None, :]).clamp(min=0)
    decay = torch.where(i[:, None] >= i[None, :], 0.8**gap, torch.zeros(())).to(x.dtype)
    return decay @ x


# t2j: x=f32[3, 4, 5]
def channel_stats(x: torch.Tensor):
    top = x.max(dim=1).values
    low = x.min(dim=2).values
    spread = x.var(dim=(1, 2))
    return top.sum(dim=1), low.prod(dim=1), spread


# t2j: boxes=0 <= f32[5, 4] < 4
def centers(boxes: torch.Tensor):
    x0, y0, x1, y1 = boxes.unbind(-1)
    cx, cy = (x0 + x1) / 2, (y0 + y1) / 2
    w, h = x1 - x0, y1 - y0
    return torch.stack([cx, cy, w, h], dim=-1)


# t2j: x=f32[4, 6]
def write_rows(x: torch.Tensor):
    y = x.clone()
    y[1:3] = y[1:3] * 2
    y[:, 0] = 1.0
    y[-1, 2:5] += x[0, 1:4]
    return y


# t2j: x=f32[2, 3, 6], noise=f32[2, 3, 6], t=i64[2] < 8
def q_sample(x: torch.Tensor, noise: torch.Tensor, t: torch.Tensor):
    betas = torch.linspace(0.01, 0.3, 8).to(x.dtype)
    alphas = torch.cumprod(1 - betas, dim=0)
    a = alphas[t][:, None, None]
    return a.sqrt() * x + (1 - a).sqrt() * noise


# t2j: a=f32[3, 4], b=f32[5, 4]
def bilinear_scores(a: torch.Tensor, b: torch.Tensor):
    scores = torch.einsum("id,jd->ij", a, b)
    scores = scores - scores.logsumexp(dim=1, keepdim=True)
    return scores.argmax(dim=1), scores.exp()


# t2j: x=f32[2, 3, 4, 6]
def crop_flip(x: torch.Tensor):
    left = x[:, :, 1:, :-2]
    flipped = torch.flip(left, dims=[-1])
    rolled = torch.roll(flipped, shifts=1, dims=2)
    return F.pad(rolled, (1, 2, 0, 1), value=0.5)
