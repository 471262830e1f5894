from copy import deepcopy

import torch
from torch import nn

torch.manual_seed(0)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 3)
        self.conv = nn.Conv1d(3, 3, 2)
        self.norm = nn.BatchNorm1d(3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.emb.weight

    def forward(self, x):
        h = self.norm(self.conv(self.emb(x).transpose(1, 2))).mean(2)
        return self.out(h)


class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.ema = deepcopy(model).eval()
        self.updates = 0
        self.decay = lambda x: decay * (1 - 2 ** (-x / 5))

    def update(self, model):
        with torch.no_grad():
            self.updates += 1
            d = self.decay(self.updates)
            msd = model.state_dict()
            for k, v in self.ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v *= d
                    v += (1.0 - d) * msd[k].detach()


class Shadow(nn.Module):
    def __init__(self, model, decay=0.9):
        super().__init__()
        self.module = deepcopy(model)
        self.module.eval()
        self.decay = decay

    def _update(self, model, update_fn):
        with torch.no_grad():
            for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
                ema_v.copy_(update_fn(ema_v, model_v))

    def update(self, model):
        self._update(model, update_fn=lambda e, m: self.decay * e + (1. - self.decay) * m)

    def forward(self, x):
        return self.module(x)


def lerp_all(ema, net, d):
    with torch.no_grad():
        for e, m in zip(ema.state_dict().values(), net.state_dict().values()):
            if e.is_floating_point():
                e.lerp_(m, 1 - d)
            else:
                e.copy_(m)


def halve_rows(ema, net):
    msd = net.state_dict()
    for k, v in ema.state_dict().items():
        if v.ndim >= 2:
            v.mul_(0.5).add_(msd[k].mean(0, keepdim=True), alpha=0.5)


def load_own(net, given):
    own = net.state_dict()
    for name, param in given.items():
        if name not in own:
            continue
        if isinstance(param, nn.Parameter):
            param = param.data
        own[name].copy_(param)


net = Tied()
averaged, shadow, lerped = ModelEMA(net), Shadow(net), deepcopy(net).eval()
opt = torch.optim.SGD(net.parameters(), lr=0.3)
x = torch.arange(20).reshape(4, 5) % 5
y = torch.tensor([0, 1, 2, 3])
for step in range(50):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    averaged.update(net)
    shadow.update(net)
    lerp_all(lerped, net, 0.9)
print(loss.item())
print(averaged.ema(x))
print(shadow(x))
print(lerped(x))
halve_rows(lerped, net)
print(lerped(x))
load_own(lerped, {
    'conv.weight': torch.arange(18.0).reshape(3, 3, 2) / 9, 'conv.bias': torch.tensor(2.0), 'no': torch.ones(1),
    'emb.weight': nn.Parameter(torch.linspace(-1, 1, 15).reshape(5, 3)),
})
print(lerped(x))
