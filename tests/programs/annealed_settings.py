import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument('--beta', type=float, default=0.5)
args = parser.parse_args([])
table = torch.zeros(3)


def penalty(out):
    return args.beta * ((out - table) ** 2).mean()


torch.manual_seed(0)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(20, 3)
for epoch in range(4):
    args.beta = 0.1 * epoch
    table[epoch % 3] = 1.0
    out = net(x)
    loss = (out - x).pow(2).mean() + penalty(out) + args.beta * out.abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
