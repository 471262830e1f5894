import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader, SubsetRandomSampler
import numpy as np


class Toy(Dataset):
    def __init__(self, n, transform=None):
        g = torch.Generator().manual_seed(11)
        self.x = torch.randn(n, 6, generator=g)
        self.reg = self.x.sum(dim=1)
        self.cls = (self.x[:, 0] * self.x[:, 1] > 0).long()
        self.transform = transform

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, i):
        x = self.x[i]
        if self.transform:
            x = self.transform(x)
        return {'x': x, 'reg': self.reg[i], 'cls': self.cls[i]}


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 20), nn.ELU())
        self.regressor = nn.Linear(20, 1)
        self.classifier = nn.Linear(20, 2)

    def forward(self, x):
        h = self.trunk(x)
        return self.regressor(h).squeeze(-1), self.classifier(h)


class Scale(object):
    def __init__(self, s): self.s = s
    def __call__(self, t): return t * self.s


ds = Toy(60, transform=Scale(0.5))
indices = list(range(len(ds)))
split = 45
train_dl = DataLoader(ds, batch_size=15, sampler=SubsetRandomSampler(indices[:split]))
valid_dl = DataLoader(ds, batch_size=15, sampler=SubsetRandomSampler(indices[split:]))
model = Shared()
mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()
opt = torch.optim.RMSprop(model.parameters(), lr=5e-3)
lr_sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
history = {'train': [], 'valid': []}
for epoch in range(4):
    for phase, dl in (('train', train_dl), ('valid', valid_dl)):
        if phase == 'train': model.train()
        else: model.eval()
        losses = []
        for batch in dl:
            opt.zero_grad()
            with torch.set_grad_enabled(phase == 'train'):
                r, c = model(batch['x'])
                loss_r = mse(r, batch['reg'])
                loss_c = ce(c, batch['cls'])
                if phase == 'train':
                    loss_r.backward(retain_graph=True)
                    (0.5 * loss_c).backward()
                    opt.step()
            losses.append([loss_r.item(), loss_c.item()])
        history[phase].append(np.mean(losses, axis=0))
        print(phase, epoch, *['%.4f' % v for v in history[phase][-1]])
    lr_sched.step()
