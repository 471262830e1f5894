"""U-Net for segmentation: transposed convolutions or bilinear upsampling, skip connections by concatenation."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    """Two 3x3 convolutions, each with batch norm and ReLU."""

    def __init__(self, in_channels, out_channels, hidden=None):
        super().__init__()
        if not hidden:
            hidden = out_channels
        self.convs = nn.Sequential(
            nn.Conv2d(in_channels, hidden, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU(inplace=True),
            nn.Conv2d(hidden, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.convs(x)


class Down(nn.Module):
    """Halve the image, then convolve."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.shrink = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.shrink(x)


class Up(nn.Module):
    """Double the image, join the skip connection, convolve."""

    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        # an odd image lost a row or column on the way down
        rows = x2.size()[2] - x1.size()[2]
        columns = x2.size()[3] - x1.size()[3]

        x1 = F.pad(x1, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class OutConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super(OutConv, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False, base=8):
        super(UNet, self).__init__()
        self.n_channels = n_channels
        self.n_classes = n_classes
        self.bilinear = bilinear

        self.inc = DoubleConv(n_channels, base)
        self.down1 = Down(base, 2 * base)
        factor = 2 if bilinear else 1
        self.down2 = Down(2 * base, 4 * base // factor)
        self.up1 = Up(4 * base, 2 * base // factor, bilinear)
        self.up2 = Up(2 * base, base, bilinear)
        self.outc = OutConv(base, n_classes)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        logits = self.outc(x)
        return logits
