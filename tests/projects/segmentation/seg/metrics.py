def iou(logits, target, thr=0.5):
    pred = (logits.sigmoid() > thr).float()
    inter = (pred * target).sum((1, 2, 3))
    union = pred.sum((1, 2, 3)) + target.sum((1, 2, 3)) - inter
    return ((inter + 1e-6) / (union + 1e-6)).mean().item()


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best = None
        self.bad = 0

    def __call__(self, value):
        if self.best is None or value > self.best + 1e-4:
            self.best = value
            self.bad = 0
            return False
        self.bad += 1
        return self.bad >= self.patience
