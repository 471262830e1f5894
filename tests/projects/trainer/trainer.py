import time

class Trainer:
    def __init__(self, model, opt, crit):
        self.model = model
        self.opt = opt
        self.crit = crit

    def fit(self, loader, epochs):
        for e in range(epochs):
            tot, n = 0, 0
            for x, y in loader:
                self.opt.zero_grad()
                out = self.model(x)
                loss = self.crit(out, y)
                loss.backward()
                self.opt.step()
                tot += loss.item() * x.size(0)
                n += x.size(0)
            print(e, tot / n)
