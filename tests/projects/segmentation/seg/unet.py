import torch
from torch import nn


def double_conv(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, cin=1, cout=1, base=8):
        super().__init__()
        self.d1 = double_conv(cin, base)
        self.d2 = double_conv(base, base * 2)
        self.pool = nn.MaxPool2d(2)
        self.mid = double_conv(base * 2, base * 2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.u2 = double_conv(base * 4, base)
        self.u1 = double_conv(base * 2, base)
        self.out = nn.Conv2d(base, cout, 1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        c = self.mid(self.pool(b))
        x = torch.cat([self.up(c), b], 1)
        x = self.u2(x)
        x = torch.cat([self.up(x), a], 1)
        return self.out(self.u1(x))
