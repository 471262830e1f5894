import torch
import torch.nn as nn
import torch.optim as optim

net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = optim.Adam(net.parameters(), lr=1e-2)


def u(t, x):
    return net(torch.stack([t, x], dim=-1)).squeeze(-1)


def residual(t, x):
    t.requires_grad_(True)
    x.requires_grad_(True)
    v = u(t, x)
    v_t = torch.autograd.grad(v.sum(), t, create_graph=True)[0]
    v_x = torch.autograd.grad(v.sum(), x, create_graph=True)[0]
    return v_t + v * v_x


def train(steps):
    for i in range(steps):
        t, x = torch.rand(32), torch.rand(32)
        loss = residual(t, x).pow(2).mean() + (u(torch.zeros(32), x.detach()) - torch.sin(x.detach())).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 2 == 0:
            print(i, loss.item())


torch.manual_seed(2)
train(6)
