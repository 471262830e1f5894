from collections import OrderedDict
from typing import List

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv3d(in_channels, out_channels, 3, padding=1),
            nn.GroupNorm(4, out_channels),
            nn.ReLU(inplace=True),
            nn.Conv3d(out_channels, out_channels, 3, padding=1),
            nn.GroupNorm(4, out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.net(x)


class UNet3D(nn.Module):
    """Çiçek et al. 2016: three levels, transposed convolutions, skip connections."""

    def __init__(self, in_channels=1, out_channels=2, features=(16, 32, 64)):
        super().__init__()
        self.downs = nn.ModuleList()
        self.ups = nn.ModuleList()
        for feature in features:
            self.downs.append(DoubleConv(in_channels, feature))
            in_channels = feature
        self.bottleneck = DoubleConv(features[-1], features[-1] * 2)
        for feature in reversed(features):
            self.ups.append(nn.ConvTranspose3d(feature * 2, feature, kernel_size=2, stride=2))
            self.ups.append(DoubleConv(feature * 2, feature))
        self.final = nn.Conv3d(features[0], out_channels, kernel_size=1)
        self.pool = nn.MaxPool3d(2)

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottleneck(x)
        skips = skips[::-1]
        for i in range(0, len(self.ups), 2):
            x = self.ups[i](x)
            skip = skips[i // 2]
            if x.shape != skip.shape:
                x = F.interpolate(x, size=skip.shape[2:])
            x = self.ups[i + 1](torch.cat((skip, x), dim=1))
        return self.final(x)


class VNet(nn.Module):
    """Milletari et al. 2016: kernels of 5, PReLU, residuals that add the input, a softmax over channels."""

    class Down(nn.Module):
        def __init__(self, channels: int, count: int) -> None:
            super().__init__()
            out = 2 * channels
            self.down = nn.Conv3d(channels, out, kernel_size=2, stride=2)
            self.act = nn.PReLU(out)
            self.convs = nn.ModuleList([nn.Conv3d(out, out, 5, padding=2) for _ in range(count)])
            self.norms = nn.ModuleList([nn.InstanceNorm3d(out, affine=True) for _ in range(count)])

        def forward(self, x: Tensor) -> Tensor:
            x = self.act(self.down(x))
            y = x
            for conv, norm in zip(self.convs, self.norms):
                y = self.act(norm(conv(y)))
            return x + y

    def __init__(self, channels: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.start = nn.Conv3d(1, channels, 5, padding=2)
        self.down1 = VNet.Down(channels, 1)
        self.down2 = VNet.Down(2 * channels, 2)
        self.up2 = nn.ConvTranspose3d(4 * channels, 2 * channels, 2, stride=2)
        self.up1 = nn.ConvTranspose3d(2 * channels, channels, 2, stride=2)
        self.out = nn.Conv3d(channels, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.start(x)
        second = self.down1(first)
        third = self.down2(second)
        y = self.up2(third) + second
        y = self.up1(y) + first
        return torch.softmax(self.out(y), dim=1)


class ResidualUNet(nn.Module):
    """Upsampling by interpolation instead of transposed convolutions."""

    def __init__(self, channels: List[int] = [8, 16, 24]):
        super().__init__()
        a, b, c = channels
        self.enc1 = nn.Conv3d(2, a, 3, padding=1)
        self.enc2 = nn.Conv3d(a, b, 3, stride=2, padding=1)
        self.enc3 = nn.Conv3d(b, c, 3, stride=2, padding=1)
        self.dec2 = nn.Conv3d(c + b, b, 3, padding=1)
        self.dec1 = nn.Conv3d(b + a, a, 3, padding=1)
        self.head = nn.Conv3d(a, 4, 1)
        self.norm = nn.InstanceNorm3d(a)

    def forward(self, x):
        e1 = F.leaky_relu(self.norm(self.enc1(x)), 0.1)
        e2 = F.elu(self.enc2(e1))
        e3 = F.elu(self.enc3(e2))
        up = F.interpolate(e3, size=e2.shape[2:], mode="nearest")
        d2 = F.elu(self.dec2(torch.cat([up, e2], 1)))
        up = F.interpolate(d2, size=e1.shape[2:], mode="trilinear", align_corners=False)
        d1 = F.elu(self.dec1(torch.cat([up, e1], 1)))
        return self.head(d1)


class ASPP3D(nn.Module):
    """Dilated convolutions side by side."""

    def __init__(self, in_channels=8, out_channels=12, rates=(1, 2, 4)):
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(OrderedDict([
                ("conv", nn.Conv3d(in_channels, out_channels, 3, padding=r, dilation=r, bias=False)),
                ("bn", nn.BatchNorm3d(out_channels)),
                ("relu", nn.ReLU()),
            ]))
            for r in rates
        )
        self.project = nn.Conv3d(len(rates) * out_channels, out_channels, 1)

    def forward(self, x):
        return self.project(torch.cat([b(x) for b in self.branches], dim=1))


class AttentionGate3D(nn.Module):
    """The gate of an attention U-Net."""

    def __init__(self, gating=16, skip=8, inner=4):
        super().__init__()
        self.w_g = nn.Conv3d(gating, inner, kernel_size=1, stride=1, padding=0, bias=True)
        self.w_x = nn.Conv3d(skip, inner, kernel_size=2, stride=2, padding=0, bias=False)
        self.psi = nn.Sequential(nn.Conv3d(inner, 1, kernel_size=1), nn.Sigmoid())

    # t2j: g=f32[3, 16, 4, 5, 6], x=f32[3, 8, 8, 10, 12]
    def forward(self, g, x):
        act = F.relu(self.w_g(g) + self.w_x(x))
        psi = F.interpolate(self.psi(act), scale_factor=2, mode="nearest")
        return x * psi


class VoxelNetMiddle(nn.Module):
    """The middle layers of a detector: strides and paddings that differ in every axis."""

    def __init__(self):
        super().__init__()
        self.conv3d_1 = nn.Conv3d(16, 12, 3, stride=(2, 1, 1), padding=(1, 1, 1))
        self.conv3d_2 = nn.Conv3d(12, 12, (3, 3, 3), stride=(1, 1, 1), padding=(0, 1, 1))
        self.conv3d_3 = nn.Conv3d(12, 12, 3, stride=(2, 1, 1), padding=(1, 1, 1))
        self.bn = nn.BatchNorm3d(12)

    def forward(self, x):
        x = F.relu(self.conv3d_1(x))
        x = F.relu(self.bn(self.conv3d_2(x)))
        x = F.relu(self.conv3d_3(x))
        n, c, d, h, w = x.shape
        return x.reshape(n, c * d, h, w)
