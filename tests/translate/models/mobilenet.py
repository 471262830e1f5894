"""Mobile inverted bottlenecks with squeeze-and-excitation and hard swish."""

from functools import partial
from typing import Callable, List, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def round_width(v: float, divisor: int, min_value: Optional[int] = None) -> int:
    """The multiple of ``divisor`` nearest to a width."""
    if min_value is None:
        min_value = divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    if new_v < 0.9 * v:  # never below 90%
        new_v += divisor
    return new_v


class SqueezeExcitation(nn.Module):
    def __init__(self, input_channels: int, squeeze_factor: int = 4):
        super().__init__()
        squeeze_channels = round_width(input_channels // squeeze_factor, 8)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.relu = nn.ReLU(inplace=True)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)

    def _scale(self, input: Tensor, inplace: bool) -> Tensor:
        scale = F.adaptive_avg_pool2d(input, 1)
        scale = self.fc1(scale)
        scale = self.relu(scale)
        scale = self.fc2(scale)
        return F.hardsigmoid(scale, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        scale = self._scale(input, True)
        return scale * input


class ConvNormAct(nn.Sequential):
    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        norm_layer: Optional[Callable[..., nn.Module]] = None,
        activation_layer: Optional[Callable[..., nn.Module]] = None,
    ) -> None:
        padding = (kernel_size - 1) // 2
        if norm_layer is None:
            norm_layer = nn.BatchNorm2d
        if activation_layer is None:
            activation_layer = nn.ReLU6
        super().__init__(
            nn.Conv2d(in_planes, out_planes, kernel_size, stride, padding, groups=groups, bias=False),
            norm_layer(out_planes),
            activation_layer(inplace=True),
        )
        self.out_channels = out_planes


class BlockSetting:
    def __init__(self, input_channels, kernel, expanded, out_channels, use_se, activation, stride):
        self.input_channels = input_channels
        self.kernel = kernel
        self.expanded_channels = expanded
        self.out_channels = out_channels
        self.use_se = use_se
        self.use_hs = activation == "HS"
        self.stride = stride


class InvertedResidual(nn.Module):
    def __init__(self, block: BlockSetting, norm_layer: Callable[..., nn.Module]):
        super().__init__()
        if not (1 <= block.stride <= 2):
            raise ValueError("illegal stride value")

        self.use_res_connect = block.stride == 1 and block.input_channels == block.out_channels

        layers: List[nn.Module] = []
        activation_layer = nn.Hardswish if block.use_hs else nn.ReLU

        # expand
        if block.expanded_channels != block.input_channels:
            layers.append(
                ConvNormAct(
                    block.input_channels,
                    block.expanded_channels,
                    kernel_size=1,
                    norm_layer=norm_layer,
                    activation_layer=activation_layer,
                )
            )

        # depthwise
        layers.append(
            ConvNormAct(
                block.expanded_channels,
                block.expanded_channels,
                kernel_size=block.kernel,
                stride=block.stride,
                groups=block.expanded_channels,
                norm_layer=norm_layer,
                activation_layer=activation_layer,
            )
        )
        if block.use_se:
            layers.append(SqueezeExcitation(block.expanded_channels))

        # project
        layers.append(
            ConvNormAct(
                block.expanded_channels,
                block.out_channels,
                kernel_size=1,
                norm_layer=norm_layer,
                activation_layer=nn.Identity,
            )
        )

        self.layers = nn.Sequential(*layers)
        self.out_channels = block.out_channels

    def forward(self, input: Tensor) -> Tensor:
        result = self.layers(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(nn.Module):
    def __init__(
        self,
        settings: List[BlockSetting],
        last_channel: int,
        num_classes: int = 1000,
        dropout: float = 0.2,
        norm_layer: Optional[Callable[..., nn.Module]] = None,
    ) -> None:
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)

        layers: List[nn.Module] = []
        first = settings[0].input_channels
        layers.append(
            ConvNormAct(
                3, first, kernel_size=3, stride=2, norm_layer=norm_layer, activation_layer=nn.Hardswish
            )
        )
        for block in settings:
            layers.append(InvertedResidual(block, norm_layer))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = settings[-1].out_channels
        self.classifier = nn.Sequential(
            nn.Linear(last, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )

        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.classifier(x)


def mobilenet_v3_tiny(num_classes: int = 1000, dropout: float = 0.2) -> MobileNetV3:
    setting_of = BlockSetting
    setting = [
        setting_of(8, 3, 8, 8, True, "RE", 1),
        setting_of(8, 3, 24, 16, False, "RE", 2),
        setting_of(16, 5, 40, 16, True, "HS", 1),
    ]
    return MobileNetV3(setting, last_channel=32, num_classes=num_classes, dropout=dropout)
