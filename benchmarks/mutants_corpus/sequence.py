"""Recurrent cells, embeddings, state and sampling."""

import torch
import torch.nn as nn
import torch.nn.functional as F


# t2j: args=(3, 4), x=f32[2, 3], h=f32[2, 4], c=f32[2, 4]
class LSTMCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.ih = nn.Linear(inputs, 4 * hidden)
        self.hh = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor):
        gates = self.ih(x) + self.hh(h)
        i, f, g, o = gates.chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


# t2j: args=(3, 4), x=f32[2, 5, 3]
class MinimalGRU(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.gate = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x: torch.Tensor):
        h = torch.zeros(x.shape[0], self.hidden, dtype=x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.gate(torch.cat([x[:, t], h], dim=1)))
            n = torch.tanh(self.candidate(torch.cat([x[:, t], z * h], dim=1)))
            h = (1 - z) * h + z * n
            outputs.append(h)
        return torch.stack(outputs, dim=1)


# t2j: args=(7, 4, 3), ids=i64[2, 5] < 7
class BagClassifier(nn.Module):
    def __init__(self, vocabulary, dim, classes):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.out = nn.Linear(dim, classes)

    def forward(self, ids: torch.Tensor):
        mask = (ids != 0).unsqueeze(-1)
        e = self.embed(ids) * mask
        mean = e.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return self.out(mean)


# t2j: args=(7, 4), ids=i64[2, 5] < 7
class TiedLM(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor):
        x = self.embed(ids)
        x = x + x.cumsum(dim=1) / 3
        x = self.norm(x)
        return self.head(x)


# t2j: args=(3, 4), x=f32[2, 6, 3]
class LSTMEncoder(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x: torch.Tensor):
        y, (h, c) = self.lstm(x)
        last = y[:, -1]
        return self.out(last), h[0] - c[0]


# t2j: args=(5,), x=f32[3, 5]
class RunningNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.register_buffer("count", torch.tensor(1.0))

    def forward(self, x: torch.Tensor):
        if self.training:
            mean = x.mean(dim=0).detach()
            var = x.var(dim=0, unbiased=False).detach()
            self.mean = 0.9 * self.mean + 0.1 * mean
            self.var = 0.9 * self.var + 0.1 * var
            self.count = self.count + 1
        return (x - self.mean) / torch.sqrt(self.var + 1e-4)


# t2j: args=(6, 3), x=f32[4, 6]
class VAE(nn.Module):
    def __init__(self, dim, latent):
        super().__init__()
        self.enc = nn.Linear(dim, 8)
        self.mu = nn.Linear(8, latent)
        self.logvar = nn.Linear(8, latent)
        self.dec = nn.Linear(latent, dim)

    def forward(self, x: torch.Tensor):
        h = torch.tanh(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        eps = torch.randn_like(mu)
        z = mu + eps * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


# t2j: args=(4, 5), z=f32[6, 4]
class VectorQuantizer(nn.Module):
    def __init__(self, dim, codes):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)

    def forward(self, z: torch.Tensor):
        w = self.codebook.weight
        d = z.pow(2).sum(1, keepdim=True) - 2 * z @ w.t() + w.pow(2).sum(1)
        index = d.argmin(dim=1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        return q, loss, index


# t2j: args=(4, 3), x=f32[5, 4]
class Mixture(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(experts)])

    def forward(self, x: torch.Tensor):
        weights = F.softmax(self.gate(x), dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (weights.unsqueeze(-1) * outputs).sum(dim=1)


# t2j: args=(4,), x=f32[5, 4]
class Highway(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x: torch.Tensor):
        t = torch.sigmoid(self.gate(x))
        return t * F.relu(self.transform(x)) + (1 - t) * x


# t2j: args=(4, 6, 2), state=f32[5, 4]
class ActorCritic(nn.Module):
    def __init__(self, states, hidden, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.zeros(actions))

    def forward(self, state: torch.Tensor):
        h = self.body(state)
        mean = self.actor(h)
        std = self.log_std.exp().expand_as(mean)
        value = self.critic(h).squeeze(-1)
        entropy = (0.5 + std.log()).sum(-1)
        return mean, std, value, entropy


# t2j: args=(3, 6), x=f32[7, 3], t=i64[7] < 9
class TimeEmbedding(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.width = width
        self.fc = nn.Linear(dim + width, dim)

    def forward(self, x: torch.Tensor, t: torch.Tensor):
        half = self.width // 2
        freqs = torch.exp(-2.0 * torch.arange(half) / half)
        args = t[:, None] * freqs[None]
        emb = torch.cat([torch.sin(args), torch.cos(args)], dim=-1).to(x.dtype)
        return self.fc(torch.cat([x, emb], dim=1)) + x
