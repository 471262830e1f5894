import torch
import torch.nn as nn
import torch.nn.functional as F


class CoordConv3d(nn.Module):
    """Liu et al. 2018: coordinates as further channels."""

    def __init__(self, in_channels=4, out_channels=10, kernel_size=3):
        super().__init__()
        self.conv = nn.Conv3d(in_channels + 3, out_channels, kernel_size, padding=kernel_size // 2)

    def forward(self, x):
        n, _, d, h, w = x.shape
        zz = torch.linspace(-1, 1, d, device=x.device).view(1, 1, d, 1, 1).expand(n, 1, d, h, w)
        yy = torch.linspace(-1, 1, h, device=x.device).view(1, 1, 1, h, 1).expand(n, 1, d, h, w)
        xx = torch.linspace(-1, 1, w, device=x.device).view(1, 1, 1, 1, w).expand(n, 1, d, h, w)
        return self.conv(torch.cat([x, zz, yy, xx], dim=1))


class GroupedDilated3D(nn.Module):
    """Groups, dilation and stride at once; kernels that differ in each axis."""

    def __init__(self, channels=12):
        super().__init__()
        self.a = nn.Conv3d(channels, 2 * channels, (3, 2, 3), stride=(1, 2, 1), dilation=(2, 1, 1), groups=3)
        self.b = nn.Conv3d(2 * channels, channels, (1, 3, 5), padding=(0, 1, 2), groups=4)
        self.c = nn.ConvTranspose3d(channels, channels, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=1)

    def forward(self, x):
        return self.c(torch.tanh(self.b(F.gelu(self.a(x)))))


class PaddingModes3D(nn.Module):
    """Every padding mode that a convolution has."""

    def __init__(self, channels=4):
        super().__init__()
        self.circular = nn.Conv3d(channels, 6, 3, padding=1, padding_mode="circular")
        self.replicate = nn.Conv3d(6, 6, 3, padding=(1, 2, 1), padding_mode="replicate")
        self.reflect = nn.Conv3d(6, 6, 3, padding=1, padding_mode="reflect")
        self.zeros = nn.Conv3d(6, 5, 3, padding="same")

    def forward(self, x):
        x = torch.sigmoid(self.circular(x))
        x = torch.sigmoid(self.replicate(x))
        x = torch.sigmoid(self.reflect(x))
        return self.zeros(x)


class Pooling3D(nn.Module):
    """Pooling of all kinds between two convolutions."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(2, 8, 3, padding=1)
        self.max = nn.MaxPool3d(3, stride=2, padding=1, ceil_mode=True)
        self.avg = nn.AvgPool3d((2, 2, 2), stride=1, padding=(1, 0, 1), count_include_pad=False)
        self.adaptive = nn.AdaptiveMaxPool3d((2, 3, 2))
        self.last = nn.Conv3d(8, 3, (1, 2, 2))

    def forward(self, x):
        return self.last(self.adaptive(self.avg(self.max(F.relu(self.conv(x))))))


class CausalConv3d(nn.Module):
    """Padding in front of time only, as video autoencoders have it."""

    def __init__(self, in_channels=4, out_channels=8, kernel_size=(3, 3, 3)):
        super().__init__()
        t, h, w = kernel_size
        self.pad = (w // 2, w // 2, h // 2, h // 2, t - 1, 0)
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(2, out_channels)

    def forward(self, x):
        return F.silu(self.norm(self.conv(F.pad(x, self.pad, mode="constant", value=0.0))))


class WeightStandardized3D(nn.Module):
    """A convolution whose weight is normalized in the call, by the function."""

    def __init__(self, in_channels=5, out_channels=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_channels, in_channels, 3, 3, 3))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x):
        w = self.weight
        mean = w.mean(dim=(1, 2, 3, 4), keepdim=True)
        std = w.std(dim=(1, 2, 3, 4), keepdim=True) + 1e-5
        return F.conv3d(x, (w - mean) / std, self.bias, stride=1, padding=1)


class WideConv3D(nn.Module):
    """Few layers, many channels: 256 to 512."""

    def __init__(self, channels=256):
        super().__init__()
        self.conv1 = nn.Conv3d(channels, 2 * channels, 3, padding=1)
        self.bn1 = nn.BatchNorm3d(2 * channels)
        self.conv2 = nn.Conv3d(2 * channels, channels, 3, padding=1)

    def forward(self, x):
        return self.conv2(F.relu(self.bn1(self.conv1(x))))
