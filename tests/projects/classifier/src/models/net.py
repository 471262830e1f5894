import torch.nn as nn
import torch.nn.functional as F

from .layers import SE, conv_bn


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1, use_se=True):
        super().__init__()
        self.c1 = conv_bn(cin, cout, stride)
        self.c2 = conv_bn(cout, cout, act=nn.Identity)
        self.se = SE(cout) if use_se else None
        self.skip = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride)

    def forward(self, x):
        out = self.c2(self.c1(x))
        if self.se is not None:
            out = self.se(out)
        return F.relu(out + self.skip(x))


class ConvNet(nn.Module):
    def __init__(self, num_classes=4, width=8, depth=1):
        super().__init__()
        self.stem = conv_bn(3, width)
        self.blocks = nn.ModuleList()
        c = width
        for i in range(depth):
            self.blocks.append(Block(c, c * 2, stride=2, use_se=i % 2 == 0))
            c *= 2
        self.head = nn.Linear(c, num_classes)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        x = x.mean([2, 3])
        return self.head(self.drop(x))
