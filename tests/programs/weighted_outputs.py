"""A forward that gives Python's numbers beside its tensors, all of which a log of the run keeps as JSON."""

import json

import torch
import torch.nn as nn


class Autoencoder(nn.Module):
    def __init__(self, warmup=5):
        super().__init__()
        self.enc = nn.Linear(4, 2)
        self.dec = nn.Linear(2, 4)
        self.warmup = warmup

    def forward(self, x, step):
        code = self.enc(x)
        out = self.dec(torch.tanh(code))
        weight = min(1.0, step / self.warmup) * 0.1
        return {"out": out, "code": code, "weight": weight, "size": x.shape[0]}


def sparse_loss(res, x, scale):
    rec = ((res["out"] - x) ** 2).mean()
    if scale > 1:
        scale = 1.0
    return rec + scale * res["weight"] * res["code"].abs().mean(), {"scale": scale, "rec": rec.detach()}


torch.manual_seed(0)
x = torch.randn(64, 4)
net = Autoencoder()
opt = torch.optim.Adam(net.parameters(), lr=0.02)
log, seen = [], 0
for step in range(10):
    res = net(x[step : step + 32], step)
    loss, parts = sparse_loss(res, x[step : step + 32], 0.3 * step)
    opt.zero_grad()
    loss.backward()
    opt.step()
    seen += res["size"]
    log.append({"loss": loss.item(), "weight": res["weight"], "seen": seen, "scale": parts["scale"]})
    if isinstance(res["weight"], float) and step % 3 == 0:
        print(step, parts["rec"].item(), f"{parts['scale']:.2f}")
print(json.dumps(log))
