"""EfficientNet-like blocks with stochastic depth, SiLU and compound scaling."""

import math
from dataclasses import dataclass
from typing import List

import torch
import torch.nn as nn


def drop_path(x: torch.Tensor, drop_prob: float = 0.0, training: bool = False) -> torch.Tensor:
    """Stochastic depth: whole samples of a residual branch are zeroed."""
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
    random_tensor.floor_()  # 0 or 1
    output = x.div(keep_prob) * random_tensor
    return output


class DropPath(nn.Module):
    def __init__(self, drop_prob: float = 0.0):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training)

    def extra_repr(self):
        return f"drop_prob={round(self.drop_prob, 3):0.3f}"


@dataclass
class BlockConfig:
    expand_ratio: float
    kernel: int
    stride: int
    in_channels: int
    out_channels: int
    num_layers: int


class SEModule(nn.Module):
    def __init__(self, channels: int, reduced: int):
        super().__init__()
        self.se = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, reduced, 1),
            nn.SiLU(inplace=True),
            nn.Conv2d(reduced, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return x * self.se(x)


class MBConv(nn.Module):
    def __init__(self, in_ch, out_ch, kernel, stride, expand_ratio, drop_prob):
        super().__init__()
        hidden = int(in_ch * expand_ratio)
        self.use_residual = stride == 1 and in_ch == out_ch
        layers = []
        if hidden != in_ch:
            layers.extend([nn.Conv2d(in_ch, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.SiLU()])
        layers.extend(
            [
                nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False),
                nn.BatchNorm2d(hidden),
                nn.SiLU(),
                SEModule(hidden, max(1, in_ch // 4)),
                nn.Conv2d(hidden, out_ch, 1, bias=False),
                nn.BatchNorm2d(out_ch),
            ]
        )
        self.block = nn.Sequential(*layers)
        self.drop_path = DropPath(drop_prob) if drop_prob > 0.0 else nn.Identity()

    def forward(self, x):
        out = self.block(x)
        if self.use_residual:
            out = self.drop_path(out) + x
        return out


class EfficientNet(nn.Module):
    def __init__(self, configs: List[BlockConfig], width_mult=1.0, depth_mult=1.0, drop_path_rate=0.2, num_classes=10):
        super().__init__()

        def width(channels):
            return max(8, int(channels * width_mult + 4) // 8 * 8)

        def depth(layers):
            return int(math.ceil(layers * depth_mult))

        stem = width(configs[0].in_channels)
        self.stem = nn.Sequential(nn.Conv2d(3, stem, 3, 2, 1, bias=False), nn.BatchNorm2d(stem), nn.SiLU())

        total = sum(depth(c.num_layers) for c in configs)
        rates = [x.item() for x in torch.linspace(0, drop_path_rate, total)]
        blocks = nn.ModuleList()
        index = 0
        in_ch = stem
        for c in configs:
            out_ch = width(c.out_channels)
            for i in range(depth(c.num_layers)):
                stride = c.stride if i == 0 else 1
                blocks.append(MBConv(in_ch, out_ch, c.kernel, stride, c.expand_ratio, rates[index]))
                in_ch = out_ch
                index += 1
        self.blocks = blocks
        self.head = nn.Linear(in_ch, num_classes)

    def forward_features(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, x):
        x = self.forward_features(x)
        return self.head(x.mean([2, 3]))


def efficientnet_tiny(**kwargs):
    configs = [BlockConfig(1, 3, 1, 8, 8, 1), BlockConfig(2.5, 5, 2, 8, 16, 2)]
    return EfficientNet(configs, **kwargs)
