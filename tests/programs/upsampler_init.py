"""Weights that are drawn anew layer by layer, transposed convolutions among them."""
import torch
import torch.nn as nn

torch.manual_seed(5)


def weights_init(m):
    name = m.__class__.__name__
    if name.find('Conv') != -1:
        nn.init.normal_(m.weight, 0.0, 0.3)
    elif name.find('BatchNorm') != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


net = nn.Sequential(
    nn.ConvTranspose2d(5, 6, 4, 2, 1, bias=False),
    nn.BatchNorm2d(6),
    nn.ReLU(True),
    nn.Conv2d(6, 3, 3, padding=1, bias=False),
    nn.Tanh(),
)
net.apply(weights_init)
opt = torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999))
noise = torch.randn(4, 5, 3, 3)
want = torch.rand(4, 3, 6, 6) * 2 - 1
for step in range(3):
    net.zero_grad()
    err = (net(noise) - want).abs().mean()
    err.backward()
    opt.step()
    print('[%d] %.5f' % (step, err.item()))
