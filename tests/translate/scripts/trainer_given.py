"""A trainer class that is given its model, its optimizer and its loss, and keeps the best weights."""

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingLR


class Trainer:
    def __init__(self, model, opt, loss_fn, device="cpu", max_grad_norm=None, accum=2):
        self.model = model.to(device)
        self.opt, self.loss_fn, self.device = opt, loss_fn, device
        self.max_grad_norm, self.accum = max_grad_norm, accum
        self.history = {"train": [], "val": []}
        self.best = float("inf")
        self.best_state = None

    def fit(self, train_batches, val_batches, epochs):
        sched = CosineAnnealingLR(self.opt, T_max=epochs)
        for _ in range(epochs):
            self.model.train()
            total, n = 0.0, 0
            self.opt.zero_grad()
            for i, (x, y) in enumerate(train_batches):
                x, y = x.to(self.device), y.to(self.device)
                loss = self.loss_fn(self.model(x), y) / self.accum
                loss.backward()
                if (i + 1) % self.accum == 0:
                    if self.max_grad_norm is not None:
                        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
                    self.opt.step()
                    self.opt.zero_grad()
                total += loss.item() * self.accum * x.size(0)
                n += x.size(0)
            sched.step()
            val = self.evaluate(val_batches)
            self.history["train"].append(total / n)
            self.history["val"].append(val)
            if val < self.best:
                self.best = val
                self.best_state = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.best_state)

    @torch.no_grad()
    def evaluate(self, batches):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in batches:
            total += self.loss_fn(self.model(x), y).item() * len(x)
            n += len(x)
        return total / n


class MLP(nn.Sequential):
    def __init__(self, sizes, act=nn.ReLU):
        layers = []
        for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
            layers.append(nn.Linear(a, b))
            if i < len(sizes) - 2:
                layers += [nn.BatchNorm1d(b), act()]
        super().__init__(*layers)


X = torch.linspace(-1, 1, 96).sin().view(24, 4)
Y = X[:, :2].flip(1).cumsum(1)
batches = [(X[i : i + 6], Y[i : i + 6]) for i in range(0, 24, 6)]

m = MLP([4, 8, 2])
# train
opt = torch.optim.SGD(m.parameters(), lr=0.3, momentum=0.9, nesterov=True, weight_decay=1e-4)
trainer = Trainer(m, opt, nn.MSELoss(), max_grad_norm=1.0)
trainer.fit(batches[:3], batches[3:], 5)
losses = trainer.history["train"]
scores = trainer.history["val"]
scores.append(trainer.evaluate(batches))
