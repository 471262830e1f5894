import copy
import shutil

import torch
import torch.nn as nn
import torch.nn.functional as F


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(4, 8)
        self.l2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


model = Net()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=1, factor=0.5)
data = torch.randn(30, 4)
target = torch.randint(0, 3, (30,))
best = float("inf")
best_wts = copy.deepcopy(model.state_dict())
for epoch in range(8):
    out = model(data)
    loss = F.cross_entropy(out, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step(loss)
    is_best = loss.item() < best
    best = min(loss.item(), best)
    if is_best:
        best_wts = copy.deepcopy(model.state_dict())
    save_checkpoint({
        "epoch": epoch + 1,
        "arch": "net",
        "state_dict": model.state_dict(),
        "best": best,
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
    }, is_best)
    print("epoch", epoch, "loss", loss.item())

checkpoint = torch.load("model_best.pth.tar")
state_dict = checkpoint["state_dict"]
net = Net()
net.load_state_dict({k.replace("module.", ""): v for k, v in state_dict.items()})
print("epoch", checkpoint["epoch"], "best", checkpoint["best"])
print(F.cross_entropy(net(data), target).item())
model.load_state_dict(best_wts)
for name, param in model.state_dict().items():
    print(name, tuple(param.shape), param.sum().item())
