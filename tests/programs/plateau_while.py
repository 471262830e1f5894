import torch as th
from torch import nn as N

th.manual_seed(0)
xs = th.rand(96, 3) * 2 - 1; ys = (xs ** 2).sum(1, keepdim=True)
train_x, val_x = xs[:72], xs[72:]
train_y, val_y = ys[:72], ys[72:]

net = N.Sequential(N.Linear(3, 24), N.Tanh(), N.Linear(24, 1))
optim = th.optim.SGD(net.parameters(), lr=.2, momentum=.8)
sched = th.optim.lr_scheduler.ReduceLROnPlateau(optim, mode="min", factor=.5, patience=1)
best = float("inf"); bad = 0; epoch = 0
while bad < 4 and epoch < 25:
    net.train()
    i = 0
    while i < len(train_x):
        xb, yb = train_x[i:i + 24], train_y[i:i + 24]; i += 24
        optim.zero_grad(set_to_none=True)
        l = N.functional.huber_loss(net(xb), yb)
        l.backward(); N.utils.clip_grad_value_(net.parameters(), .5); optim.step()
    net.eval()
    with th.no_grad(): val = N.functional.mse_loss(net(val_x), val_y).item()
    sched.step(val)
    if val < best - 1e-4: best, bad = val, 0
    else: bad += 1
    epoch += 1
    if epoch % 4 == 1: print(epoch, f"{val:.5f}", optim.param_groups[0]["lr"])
print("stopped at", epoch, "best", best)
