"""Modules and parameters in every container, under names that code makes."""

from collections import OrderedDict

import torch
import torch.nn as nn


class MultiHead(nn.Module):
    def __init__(self, dim, tasks):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(dim, size) for name, size in tasks.items()})
        self.acts = nn.ModuleDict([["relu", nn.ReLU()], ["lrelu", nn.LeakyReLU(0.1)]])

    def forward(self, x):
        out = {}
        for name, head in self.heads.items():
            out[name] = self.acts["lrelu"](head(x))
        if "extra" not in self.heads:
            out["sum"] = sum(v.sum(dim=-1) for v in out.values())
        return out


class Factors(nn.Module):
    def __init__(self, sizes, rank):
        super().__init__()
        self.us = nn.ParameterList([nn.Parameter(torch.randn(n, rank)) for n in sizes])
        self.scales = nn.ParameterDict({"a": nn.Parameter(torch.ones(rank)), "b": nn.Parameter(torch.zeros(rank))})

    def forward(self, i, j, k):
        prod = self.us[0][i] * self.us[1][j] * self.us[2][k]
        for u in self.us:
            prod = prod + u.mean()
        return (prod * self.scales["a"] + self.scales["b"]).sum(-1)


class Named(nn.Module):
    """Layers under computed names."""

    def __init__(self, widths):
        super().__init__()
        self.n = len(widths) - 1
        for i in range(self.n):
            self.add_module(f"fc{i}", nn.Linear(widths[i], widths[i + 1]))
            setattr(self, "norm%d" % i, nn.LayerNorm(widths[i + 1]))

    def forward(self, x):
        for i in range(self.n):
            x = getattr(self, f"fc{i}")(x)
            x = getattr(self, "norm{}".format(i))(x)
            if i < self.n - 1:
                x = torch.relu(x)
        return x


class Chain(nn.Module):
    """An OrderedDict Sequential that is indexed, sliced, iterated and measured."""

    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            OrderedDict(
                [
                    ("first", nn.Linear(dim, 2 * dim)),
                    ("act", nn.Tanh()),
                    ("second", nn.Linear(2 * dim, dim)),
                ]
            )
        )
        self.stages = nn.Sequential(nn.Linear(dim, dim), nn.Sigmoid(), nn.Linear(dim, dim))

    def forward(self, x):
        y = self.net.second(self.net.act(self.net.first(x)))
        features = []
        for stage in self.stages:
            y = stage(y)
            features.append(y)
        y = y + self.stages[:-1](x)
        y = y * self.net[0].weight.mean() + len(self.stages)
        return torch.cat([y, *features[1:]], dim=1)


class Registered(nn.Module):
    def __init__(self, dim, max_len=10):
        super().__init__()
        self.register_parameter("gain", nn.Parameter(torch.ones(dim)))
        self.register_parameter("offset", None)
        pe = torch.zeros(max_len, dim)
        position = torch.arange(0, max_len, dtype=torch.float64).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, dim, 2).double() * (-torch.log(torch.tensor(10000.0)) / dim))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        pe = pe.unsqueeze(0)
        self.register_buffer("pe", pe)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("running_scale", torch.ones(dim))

    def forward(self, x):
        if self.training:
            self.steps += 1
            with torch.no_grad():
                self.running_scale.mul_(0.9).add_(0.1 * x.abs().mean(dim=(0, 1)))
        x = x + self.pe[:, : x.size(1)]
        x = x * self.gain / self.running_scale
        if self.offset is not None:
            x = x + self.offset
        return x
