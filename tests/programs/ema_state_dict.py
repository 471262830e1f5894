import copy

import torch
from torch import nn, optim


@torch.no_grad()
def update_ema(ema_state, model, decay=0.95):
    for k, v in model.state_dict().items():
        if v.dtype.is_floating_point:
            ema_state[k] = ema_state[k] * decay + v.detach() * (1 - decay)
        else:
            ema_state[k] = v.clone()


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))
    ema_state = copy.deepcopy(net.state_dict())
    opt = optim.AdamW(net.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss()
    x, y = torch.randn(48, 2, 8), torch.randint(0, 2, (48,))
    for epoch in range(4):
        for xb, yb in zip(x.split(16), y.split(16)):
            loss = loss_fn(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            update_ema(ema_state, net)
        print(epoch, loss.item())
    averaged = copy.deepcopy(net)
    averaged.load_state_dict(ema_state)
    averaged.eval()
    net.eval()
    print(loss_fn(net(x), y).item(), loss_fn(averaged(x), y).item())
    torch.save({'net': net.state_dict(), 'ema': ema_state}, 'nets.pt')


main()
