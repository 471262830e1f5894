import torch.nn as nn
import torch.nn.functional as F


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        probs = logits.sigmoid()
        num = 2 * (probs * target).sum(dim=(1, 2, 3)) + self.smooth
        den = probs.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + self.smooth
        return (1 - num / den).mean()


class ComboLoss(nn.Module):
    def __init__(self, alpha=0.5):
        super().__init__()
        self.alpha = alpha
        self.dice = DiceLoss()

    def forward(self, logits, target):
        bce = F.binary_cross_entropy_with_logits(logits, target)
        return self.alpha * bce + (1 - self.alpha) * self.dice(logits, target)
