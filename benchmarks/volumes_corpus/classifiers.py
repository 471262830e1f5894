import math

import torch
import torch.nn as nn
import torch.nn.functional as F


# t2j: x=f32[2, 3, 16, 112, 112]
class C3D(nn.Module):
    """Tran et al. 2015, at its own input size: 16 frames of 112 x 112, eight convolutions."""

    def __init__(self, num_classes=7, width=16):
        super(C3D, self).__init__()
        self.conv1 = nn.Conv3d(3, width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.pool1 = nn.MaxPool3d(kernel_size=(1, 2, 2), stride=(1, 2, 2))
        self.conv2 = nn.Conv3d(width, 2 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.pool2 = nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2))
        self.conv3a = nn.Conv3d(2 * width, 4 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.conv3b = nn.Conv3d(4 * width, 4 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.pool3 = nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2))
        self.conv4a = nn.Conv3d(4 * width, 8 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.conv4b = nn.Conv3d(8 * width, 8 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.pool4 = nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2))
        self.conv5a = nn.Conv3d(8 * width, 8 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.conv5b = nn.Conv3d(8 * width, 8 * width, kernel_size=(3, 3, 3), padding=(1, 1, 1))
        self.pool5 = nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=(0, 1, 1))
        self.fc6 = nn.Linear(8 * width * 1 * 4 * 4, 32 * width)
        self.fc7 = nn.Linear(32 * width, 32 * width)
        self.fc8 = nn.Linear(32 * width, num_classes)
        self.dropout = nn.Dropout(p=0.5)
        self.relu = nn.ReLU()

    def forward(self, x):
        h = self.relu(self.conv1(x))
        h = self.pool1(h)
        h = self.relu(self.conv2(h))
        h = self.pool2(h)
        h = self.relu(self.conv3a(h))
        h = self.relu(self.conv3b(h))
        h = self.pool3(h)
        h = self.relu(self.conv4a(h))
        h = self.relu(self.conv4b(h))
        h = self.pool4(h)
        h = self.relu(self.conv5a(h))
        h = self.relu(self.conv5b(h))
        h = self.pool5(h)
        h = h.view(-1, h.size(1) * h.size(2) * h.size(3) * h.size(4))
        h = self.relu(self.fc6(h))
        h = self.dropout(h)
        h = self.relu(self.fc7(h))
        h = self.dropout(h)
        return self.fc8(h)


def conv3x3x3(in_planes, out_planes, stride=1):
    return nn.Conv3d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock3D(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = conv3x3x3(in_planes, planes, stride)
        self.bn1 = nn.BatchNorm3d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3x3(planes, planes)
        self.bn2 = nn.BatchNorm3d(planes)
        self.downsample = downsample

    def forward(self, x):
        residual = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            residual = self.downsample(x)
        out += residual
        return self.relu(out)


class R3D18(nn.Module):
    """A 3-d ResNet of 18 layers."""

    def __init__(self, layers=(2, 2, 2, 2), base=16, num_classes=5):
        super().__init__()
        self.in_planes = base
        self.conv1 = nn.Conv3d(3, base, kernel_size=(7, 7, 7), stride=(1, 2, 2), padding=(3, 3, 3), bias=False)
        self.bn1 = nn.BatchNorm3d(base)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool3d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(base, layers[0])
        self.layer2 = self._make_layer(2 * base, layers[1], stride=2)
        self.layer3 = self._make_layer(4 * base, layers[2], stride=2)
        self.layer4 = self._make_layer(8 * base, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(8 * base, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv3d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def _make_layer(self, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.in_planes != planes:
            downsample = nn.Sequential(
                nn.Conv3d(self.in_planes, planes, kernel_size=1, stride=stride, bias=False), nn.BatchNorm3d(planes)
            )
        layers = [BasicBlock3D(self.in_planes, planes, stride, downsample)]
        self.in_planes = planes
        for _ in range(1, blocks):
            layers.append(BasicBlock3D(planes, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)


class Conv2Plus1D(nn.Sequential):
    def __init__(self, in_planes, out_planes, midplanes, stride=1):
        super().__init__(
            nn.Conv3d(in_planes, midplanes, (1, 3, 3), stride=(1, stride, stride), padding=(0, 1, 1), bias=False),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), stride=(stride, 1, 1), padding=(1, 0, 0), bias=False),
        )


class R2Plus1D(nn.Module):
    """Factored convolutions of space and time."""

    def __init__(self, num_classes: int = 5, widths: tuple = (12, 24, 32)):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, 9, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            nn.BatchNorm3d(9),
            nn.ReLU(inplace=True),
            nn.Conv3d(9, widths[0], (3, 1, 1), 1, (1, 0, 0), bias=False),
            nn.BatchNorm3d(widths[0]),
            nn.ReLU(inplace=True),
        )
        stages = []
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            mid = (a * b * 27) // (a * 9 + 3 * b)
            stages += [Conv2Plus1D(a, b, mid, stride=2), nn.BatchNorm3d(b), nn.ReLU()]
            stages += [Conv2Plus1D(b, b, (b * b * 27) // (b * 9 + 3 * b)), nn.BatchNorm3d(b), nn.ReLU()]
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(widths[-1], num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stages(self.stem(x))
        return self.head(x.mean(dim=(2, 3, 4)))


class MC3(nn.Module):
    """Mixed convolutions: three dimensions first, then two in every frame."""

    def __init__(self, num_classes=6):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv3d(3, 16, 3, padding=1),
            nn.BatchNorm3d(16),
            nn.ReLU(),
            nn.Conv3d(16, 24, 3, stride=(1, 2, 2), padding=1),
            nn.BatchNorm3d(24),
            nn.ReLU(),
            nn.Conv3d(24, 32, (1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
            nn.BatchNorm3d(32),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(32, num_classes)

    def forward(self, x):
        x = self.features(x)
        x = F.adaptive_avg_pool3d(x, 1).flatten(1)
        return self.classifier(x)


class SepConv3d(nn.Module):
    def __init__(self, in_planes, out_planes, kernel_size, stride, padding=0):
        super(SepConv3d, self).__init__()
        self.conv_s = nn.Conv3d(in_planes, out_planes, kernel_size=(1, kernel_size, kernel_size),
                                stride=(1, stride, stride), padding=(0, padding, padding), bias=False)
        self.bn_s = nn.BatchNorm3d(out_planes, eps=1e-3, momentum=0.001, affine=True)
        self.conv_t = nn.Conv3d(out_planes, out_planes, kernel_size=(kernel_size, 1, 1),
                                stride=(stride, 1, 1), padding=(padding, 0, 0), bias=False)
        self.bn_t = nn.BatchNorm3d(out_planes, eps=1e-3, momentum=0.001, affine=True)

    def forward(self, x):
        x = F.relu(self.bn_s(self.conv_s(x)))
        return F.relu(self.bn_t(self.conv_t(x)))


class S3DMixed(nn.Module):
    """An inception block of S3D, whose branches are concatenated."""

    def __init__(self, in_channels=16, b0=8, b1=(6, 12), b2=(4, 8), b3=8):
        super(S3DMixed, self).__init__()
        self.branch0 = nn.Conv3d(in_channels, b0, kernel_size=1)
        self.branch1 = nn.Sequential(nn.Conv3d(in_channels, b1[0], 1), SepConv3d(b1[0], b1[1], 3, 1, 1))
        self.branch2 = nn.Sequential(nn.Conv3d(in_channels, b2[0], 1), SepConv3d(b2[0], b2[1], 3, 1, 1))
        self.branch3 = nn.Sequential(nn.MaxPool3d(3, stride=1, padding=1), nn.Conv3d(in_channels, b3, 1))

    def forward(self, x):
        return torch.cat((self.branch0(x), self.branch1(x), self.branch2(x), self.branch3(x)), 1)


class SqueezeExcite3d(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool3d(1)
        self.fc1 = nn.Conv3d(channels, reduced, 1)
        self.fc2 = nn.Conv3d(reduced, channels, 1)

    def forward(self, x):
        scale = self.fc2(F.relu(self.fc1(self.pool(x))))
        return x * torch.sigmoid(scale)


class X3DBlock(nn.Module):
    """An inverted bottleneck with a channelwise convolution, as X3D has them."""

    def __init__(self, channels: int = 12, expansion: float = 2.25, se: bool = True):
        super().__init__()
        inner = int(math.ceil(channels * expansion))
        self.expand = nn.Conv3d(channels, inner, 1, bias=False)
        self.bn_a = nn.BatchNorm3d(inner)
        self.depthwise = nn.Conv3d(inner, inner, 3, padding=1, groups=inner, bias=False)
        self.bn_b = nn.BatchNorm3d(inner)
        self.se = SqueezeExcite3d(inner, 8) if se else nn.Identity()
        self.swish = nn.SiLU()
        self.project = nn.Conv3d(inner, channels, 1, bias=False)
        self.bn_c = nn.BatchNorm3d(channels)

    def forward(self, x):
        y = F.relu(self.bn_a(self.expand(x)))
        y = self.swish(self.se(self.bn_b(self.depthwise(y))))
        return F.relu(x + self.bn_c(self.project(y)))


class DenseLayer3D(nn.Module):
    def __init__(self, num_input_features, growth_rate, bn_size):
        super().__init__()
        self.norm1 = nn.BatchNorm3d(num_input_features)
        self.conv1 = nn.Conv3d(num_input_features, bn_size * growth_rate, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm3d(bn_size * growth_rate)
        self.conv2 = nn.Conv3d(bn_size * growth_rate, growth_rate, kernel_size=3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        y = self.conv2(F.relu(self.norm2(y)))
        return torch.cat([x, y], 1)


class DenseNet3D(nn.Module):
    """Four dense blocks of 4, 4, 4 and 2 layers: 28 convolutions."""

    def __init__(self, growth_rate=8, block_config=(4, 4, 4, 2), num_init_features=16, bn_size=2, num_classes=4):
        super().__init__()
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv3d(1, num_init_features, kernel_size=3, stride=1, padding=1, bias=False))
        features = num_init_features
        for i, num_layers in enumerate(block_config):
            block = nn.Sequential(*[
                DenseLayer3D(features + j * growth_rate, growth_rate, bn_size) for j in range(num_layers)
            ])
            self.features.add_module(f"denseblock{i + 1}", block)
            features += num_layers * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"norm{i}", nn.BatchNorm3d(features))
                self.features.add_module(f"conv_t{i}", nn.Conv3d(features, features // 2, kernel_size=1, bias=False))
                features //= 2
        self.norm = nn.BatchNorm3d(features)
        self.classifier = nn.Linear(features, num_classes)

    def forward(self, x):
        y = F.relu(self.norm(self.features(x)))
        y = F.adaptive_avg_pool3d(y, (1, 1, 1)).view(x.shape[0], -1)
        return self.classifier(y)


class SlowFast(nn.Module):
    """Two pathways of different frame rates, joined by a strided convolution over time."""

    def __init__(self, alpha=4, slow=16, fast=4, num_classes=5):
        super().__init__()
        self.alpha = alpha
        self.slow1 = nn.Conv3d(3, slow, (1, 5, 5), stride=(1, 2, 2), padding=(0, 2, 2))
        self.fast1 = nn.Conv3d(3, fast, (5, 5, 5), stride=(1, 2, 2), padding=(2, 2, 2))
        self.lateral = nn.Conv3d(fast, 2 * fast, (5, 1, 1), stride=(alpha, 1, 1), padding=(2, 0, 0))
        self.slow2 = nn.Conv3d(slow + 2 * fast, 2 * slow, 3, padding=1)
        self.fast2 = nn.Conv3d(fast, 2 * fast, 3, padding=1)
        self.fc = nn.Linear(2 * slow + 2 * fast, num_classes)

    def forward(self, clip):
        slow = F.relu(self.slow1(clip[:, :, :: self.alpha]))
        fast = F.relu(self.fast1(clip))
        slow = torch.cat([slow, self.lateral(fast)], dim=1)
        slow, fast = F.relu(self.slow2(slow)), F.relu(self.fast2(fast))
        pooled = torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], dim=1)
        return self.fc(pooled)
