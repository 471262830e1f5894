import torch
import torch.nn.functional as F
from net import Tagger

WARMUP, PEAK = 3, 0.05


def rate(step):
    return PEAK * min(1.0, step / WARMUP)


torch.manual_seed(4)
model = Tagger(12, 3)
opt = model.optimizers(lr=1.0, decay=0.1)
for step in range(6):
    for group in opt.param_groups:
        group["lr"] = rate(step)
    ids = torch.randint(0, 12, (4, 5))
    loss = F.cross_entropy(model(ids).flatten(0, 1), (ids % 3).flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
