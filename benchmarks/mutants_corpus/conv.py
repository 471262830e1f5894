"""Convolutional blocks."""

import torch
import torch.nn as nn
import torch.nn.functional as F


# t2j: args=(3, 4), x=f32[2, 3, 6, 5]
class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.2)

    def forward(self, x: torch.Tensor):
        x = self.conv(x)
        x = self.bn(x)
        return F.relu(x)


# t2j: args=(4,), x=f32[2, 4, 5, 6]
class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.gain = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: torch.Tensor):
        h = F.silu(self.conv1(x))
        h = self.conv2(h) * self.gain
        return x + h


# t2j: args=(6, 2), x=f32[2, 6, 4, 5]
class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)

    def forward(self, x: torch.Tensor):
        s = x.mean(dim=(2, 3))
        s = F.relu(self.fc1(s))
        s = torch.sigmoid(self.fc2(s))
        return x * s[:, :, None, None]


# t2j: args=(4,), x=f32[2, 4, 6, 5]
class DepthwiseSeparable(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.pointwise = nn.Conv2d(channels, 2 * channels, 1)
        self.norm = nn.GroupNorm(2, 2 * channels)

    def forward(self, x: torch.Tensor):
        x = self.depthwise(x)
        x = self.pointwise(x)
        x = self.norm(x)
        return F.hardswish(x)


# t2j: args=(3,), x=f32[2, 3, 8, 6]
class DownUp(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.merge = nn.Conv2d(2 * channels, channels, 1)

    def forward(self, x: torch.Tensor):
        d = F.leaky_relu(self.down(x), 0.1)
        u = self.up(d)
        return self.merge(torch.cat([x, u], dim=1))


# t2j: args=(2, 5), x=f32[3, 2, 9]
class TemporalBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 3, dilation=2)
        self.skip = nn.Conv1d(inputs, outputs, 1)

    def forward(self, x: torch.Tensor):
        y = F.pad(x, (4, 0))
        y = torch.tanh(self.conv(y))
        return y + self.skip(x)


# t2j: x=f32[2, 3, 7, 9]
class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, x: torch.Tensor):
        a = self.pool(x)
        b = F.avg_pool2d(x, 3, stride=2, padding=1)
        return torch.cat([a, b], dim=1)


# t2j: x=f32[2, 8, 3, 5]
def pixel_shuffle(x: torch.Tensor):
    b, c, h, w = x.shape
    x = x.view(b, c // 4, 2, 2, h, w)
    x = x.permute(0, 1, 4, 2, 5, 3)
    return x.reshape(b, c // 4, h * 2, w * 2)


# t2j: args=(3, 5), x=f32[2, 3, 6, 8]
class Classifier(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, padding=1),
            nn.ELU(),
        )
        self.head = nn.Linear(6 * 3 * 4, classes)

    def forward(self, x: torch.Tensor):
        x = self.features(x)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.head(x), dim=1)


# t2j: args=(4, 2), x=f32[2, 4, 5, 6]
class DenseLayer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, growth, 3, padding=1, bias=False)
        self.drop = nn.Dropout2d(0.3)

    def forward(self, x: torch.Tensor):
        y = self.conv(F.relu(self.norm(x)))
        y = self.drop(y)
        return torch.cat((x, y), 1)
