import torch
from torch import nn


class Engine:
    def __init__(self, process):
        self.process = process
        self.handlers = {}

    def on(self, event):
        def deco(fn):
            self.handlers.setdefault(event, []).append(fn)
            return fn
        return deco

    def run(self, data, max_epochs):
        for self.epoch in range(max_epochs):
            for batch in data:
                self.output = self.process(self, batch)
            for fn in self.handlers.get("epoch", []):
                fn(self)


torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def process(engine, batch):
    x, y = batch
    optimizer.zero_grad()
    loss = nn.functional.l1_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


trainer = Engine(process)


@trainer.on("epoch")
def report(engine):
    scheduler.step()
    print(engine.epoch, engine.output, optimizer.param_groups[0]["lr"])


trainer.run([(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)], 3)
