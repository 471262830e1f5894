import torch
from torch import nn


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, channels=3, classes=2, width=8):
        super().__init__()
        self.down1 = double_conv(channels, width)
        self.down2 = double_conv(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.conv = double_conv(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, images):
        skip = self.down1(images)
        x = self.down2(self.pool(skip))
        x = torch.cat([skip, self.up(x)], dim=1)
        return self.head(self.conv(x))
